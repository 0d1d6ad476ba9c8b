// Pages on which nothing moves: only times are put into words.

import "./sure.js";
import { writeTimes } from "./times.js";

writeTimes(document);
