#!/bin/sh
# check_exports.sh NM SHARED STATIC: no driver function is defined by either flavour of the small runtime, and the
# shared one exports the runtime API and nothing else.
set -eu
nm=$1 shared=$2 static=$3
defined() { "$nm" "$@" 2>/dev/null | sed -n 's/^[0-9a-f]* [A-Za-z] //p' | sort -u; }

strange=$(defined -D --defined-only "$shared" | grep -v -e '^cuda[A-Z]' -e '^simcudart_register_kernel$' || true)
drivers=$({ defined -D --defined-only "$shared"; defined --defined-only "$static"; } | grep '^cu[A-Z]' || true)
count=$(defined -D --defined-only "$shared" | grep -c '^cuda[A-Z]')

[ -z "$strange" ] || { echo "exported, but no runtime function: $strange"; exit 1; }
[ -z "$drivers" ] || { echo "driver functions defined: $drivers"; exit 1; }
[ "$count" -gt 40 ] || { echo "only $count runtime functions are exported"; exit 1; }
