// Pages on which nothing moves but what the reader moves: times are put into words, and pictures can be read.

import "./picture.js";
import "./sure.js";
import { writeTimes } from "./times.js";

writeTimes(document);
