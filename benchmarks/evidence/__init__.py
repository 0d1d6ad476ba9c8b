"""Whether gains hold on data that a pass has not seen: many passes on real sets, and what came of them on held-out rows."""
