// A group: its table and its jobs move until all have ended.

import { onChange } from "./live.js";
import { writeTimes } from "./times.js";

onChange(writeTimes);
writeTimes(document);
