#!/usr/bin/env bash
# Prunes CHECKPOINT, shows the card in the step's summary, and ends with the exit code of what failed first: the run
# (1, 2), its target or a form (3), the gate REQUIRE (4), or the certificate on the rows CERTIFY (1).
set -uo pipefail

asked=(--data "$DATA" --output "$OUTPUT" --goal "$GOAL" --quiet)
[ -z "$TEST" ] || asked+=(--test "$TEST")
[ -z "$REQUIRE" ] || asked+=(--require "$REQUIRE")
IFS=$' \t\n' read -r -d '' -a more < <(printf '%s\0' "$OPTIONS")
axformer prune "$CHECKPOINT" "${asked[@]}" ${more[@]+"${more[@]}"}
code=$?
[ -f "$OUTPUT/report.json" ] || exit $((code ? code : 1))

# The card without its metadata, and without pictures, which a summary cannot show.
awk 'NR == 1 && /^---$/ { inside = 1; next } inside { if (/^---$/) inside = 0; next } !/^!\[/' "$OUTPUT/README.md" \
    >> "$GITHUB_STEP_SUMMARY"
python - "$OUTPUT" >> "$GITHUB_OUTPUT" <<'PYTHON'
import json, pathlib, sys
advice = json.loads(pathlib.Path(sys.argv[1], "report.json").read_text("utf-8"))["advice"]
print(f"result={sys.argv[1]}", f"form={advice['form'] or ''}", f"certified={str(advice['certified']).lower()}", sep="\n")
PYTHON

if [ -n "$CERTIFY" ]; then
    # The form that is advised, if it is one of the result; else the model in PyTorch.
    deployed=$(python - "$OUTPUT" <<'PYTHON'
import json, pathlib, sys
advice = json.loads(pathlib.Path(sys.argv[1], "report.json").read_text("utf-8"))["advice"]
print((not advice["of_untouched"] and advice["form"]) or "compact")
PYTHON
    )
    printf '\n## Certified on other rows: %s\n\n' "$deployed" >> "$GITHUB_STEP_SUMMARY"
    answers=$(mktemp -d)
    axformer answers "$CHECKPOINT" --data "$CERTIFY" --output "$answers/old.jsonl" \
        && axformer answers "$OUTPUT" --form "$deployed" --data "$CERTIFY" --output "$answers/new.jsonl" \
        && axformer certify --answers "$answers/old.jsonl" "$answers/new.jsonl" # which adds its verdict to the summary
    certified=$?
    rm -r "$answers"
    [ "$code" -ne 0 ] || code=$certified
fi
exit "$code"
