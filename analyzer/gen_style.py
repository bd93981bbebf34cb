#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a C header of page.css: the style as a string, and its hash for the content policy.

usage: gen_style.py page.css OUT_H
"""
import base64
import hashlib
import json
import pathlib
import re
import sys

HEADER = """\
/* SPDX-License-Identifier: Apache-2.0 */
/* Made by analyzer/gen_style.py from analyzer/page.css; do not edit. */
#ifndef PAGE_STYLE_H
#define PAGE_STYLE_H

/* The lines that stand between <style> and </style>. */
static const char *const PAGE_STYLE[] = {{
{lines}
}};
enum {{ PAGE_STYLE_LINES = sizeof PAGE_STYLE / sizeof *PAGE_STYLE }};

/* Its hash as style-src takes it: Content Security Policy Level 3, 2.3.1. */
#define PAGE_STYLE_SHA256 "{digest}"

#endif
"""


def without_comments(css):
    return re.sub(r"/\*.*?\*/\s*", "", css, flags=re.DOTALL)


def main():
    css = without_comments(pathlib.Path(sys.argv[1]).read_text(encoding="ascii"))
    lines = "\n".join("    " + json.dumps(line) + "," for line in css.splitlines(keepends=True))
    digest = base64.b64encode(hashlib.sha256(css.encode("ascii")).digest()).decode("ascii")
    pathlib.Path(sys.argv[2]).write_text(HEADER.format(lines=lines, digest=digest),
                                         encoding="ascii")


if __name__ == "__main__":
    main()
