// A group: its table, its pictures and its jobs move until all have ended.

import { onChange } from "./live.js";
import { pictures } from "./picture.js";
import { writeTimes } from "./times.js";

onChange(() => {
  writeTimes(document);
  for (const picture of pictures) picture.draw();
});
writeTimes(document);
