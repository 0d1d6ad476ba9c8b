// The files of a checkpoint as one archive: POSIX ustar, not compressed, made in the browser without a copy of their bytes.

const BLOCK = 512;
const LARGEST = 8 ** 11 - 1; // eleven octal digits

/** The header of one file: name, mode, size and checksum; no owner and no time, so that the same files make the same archive. */
function header(name, size) {
  const block = new Uint8Array(BLOCK);
  const put = (text, at) => block.set(new TextEncoder().encode(text), at);
  put(name, 0);
  put("0000644\0" + "0000000\0".repeat(2), 100);
  put(size.toString(8).padStart(11, "0") + " " + "0".repeat(11) + " ", 124);
  put(" ".repeat(8) + "0", 148); // the checksum is taken with blanks in its place
  put("ustar\x0000", 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(sum.toString(8).padStart(6, "0") + "\0 ", 148);
  return block;
}

/** A file's name in the directory that was chosen, or its own. */
export function nameOf(file) {
  return file.webkitRelativePath?.split("/").slice(1).join("/") || file.name;
}

/**
 * One archive of the files that a checkpoint can have, and the names of those left out.
 * @param {File[]} files what was chosen, or a directory's files
 * @param {string[]} known names of files that a checkpoint can have; weights besides, whatever their names
 * @throws {Error} there is no such file, two have one name, or one is too large for an archive
 */
export function pack(files, known) {
  const kept = files.filter((file) => known.includes(nameOf(file)) || file.name.endsWith(".safetensors"));
  const names = kept.map(nameOf);
  const twice = names.find((name, at) => names.indexOf(name) < at);
  const large = kept.find((file) => file.size > LARGEST);
  if (!kept.length) throw new Error(`none of these ${files.length} files is of a checkpoint; choose the directory that holds config.json`);
  if (twice) throw new Error(`${twice} is there twice; choose the files of one checkpoint`);
  if (large) throw new Error(`${large.name} is too large to be packed here; pack the directory as .tar`);
  const parts = kept.flatMap((file) => [header(nameOf(file), file.size), file, new Uint8Array((BLOCK - (file.size % BLOCK)) % BLOCK)]);
  const archive = new File([...parts, new Uint8Array(2 * BLOCK)], "checkpoint.tar");
  return { archive, packed: names, left: files.filter((file) => !kept.includes(file)).map((file) => file.name) };
}
