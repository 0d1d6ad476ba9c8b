// Loads `hub` directories with transformers.js, as a page or a server of Node does, and prints logits.
//
//   node loaders.mjs ASKED.json
//
// ASKED.json lists {directory, task, dtype, text}; each answer is {logits} or {failed}, one line of JSON for all.
import { readFileSync } from "node:fs";
import path from "node:path";

const [, , asked, library] = process.argv;
const js = await import(path.join(library, "@huggingface/transformers/dist/transformers.node.mjs"));
const CLASSES = {
  classification: "AutoModelForSequenceClassification",
  multi_label_classification: "AutoModelForSequenceClassification",
  regression: "AutoModelForSequenceClassification",
  token_classification: "AutoModelForTokenClassification",
  question_answering: "AutoModelForQuestionAnswering",
  masked_lm: "AutoModelForMaskedLM",
  causal_lm: "AutoModelForCausalLM",
};
js.env.allowRemoteModels = false;
const answers = [];
for (const { directory, task, dtype, text } of JSON.parse(readFileSync(asked))) {
  try {
    if (!(task in CLASSES)) throw new Error(`transformers.js has no class for ${task}`);
    const options = { dtype, local_files_only: true };
    const tokenizer = await js.AutoTokenizer.from_pretrained(directory, options);
    const model = await js[CLASSES[task]].from_pretrained(directory, options);
    const inputs = await tokenizer(text);
    const outputs = await model(inputs);
    const logits = outputs.logits ?? outputs.start_logits;
    answers.push({ logits: Array.from(logits.data), ids: Array.from(inputs.input_ids.data, Number) });
    await model.dispose();
  } catch (error) {
    answers.push({ failed: String(error.message ?? error).split("\n")[0].slice(0, 300) });
  }
}
process.stdout.write(JSON.stringify(answers) + "\n");
