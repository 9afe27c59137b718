# SPDX-License-Identifier: BSD-3-Clause
# interface.awk: mdoc of a public header, for libtupleq(3). A heading "/* ---- title ---- */" starts a subsection. A comment at
# the beginning of a line becomes text, and the declarations that follow it a display in front of that text.

function flush_block() {
	if (code != "")
		printf ".Bd -literal -offset indent\n%s.Ed\n", code
	if (text != "" && code != "")
		print ".Pp"
	if (text != "")
		print_text(text)
	code = text = ""
}

function escaped(s) {
	gsub(/\\/, "\\e", s)
	return s ~ /^[.']/ ? "\\&" s : s
}

# Fills lines. A sentence starts a line of its own. An empty line ends a paragraph.
function print_text(s, words, n, i, line, ends) {
	sub(/^[ \n]+/, "", s)
	sub(/[ \n]+$/, "", s)
	gsub(/\n\n+/, " \001 ", s)
	n = split(s, words, /[ \t\n]+/)
	line = ""
	for (i = 1; i <= n; i++) {
		if (words[i] == "\001") {
			print escaped(line)
			print ".Pp"
			line = ends = ""
			continue
		}
		if (line != "" && (ends || length(line " " words[i]) > 78)) {
			print escaped(line)
			line = ""
		}
		line = line == "" ? words[i] : line " " words[i]
		ends = words[i] ~ /[A-Za-z0-9)`][.]$/ && words[i] !~ /^(e[.]g|i[.]e)[.]$/
	}
	print escaped(line)
}

function comment_line(s) {
	sub(/^[ \t]*\/?\*+\/?[ \t]?/, "", s)
	sub(/[ \t]*\*\/[ \t]*$/, "", s)
	return s
}

FNR == 1 {
	flush_block()
	started = 0
}
/^\/\* ---- .* ---- \*\/$/ {
	flush_block()
	sub(/^\/\* ---- /, "")
	sub(/ ---- \*\/$/, "")
	print ".Ss " toupper(substr($0, 1, 1)) substr($0, 2)
	started = 1
	next
}
# Everything in front of the first heading is of the header itself, not of the interface.
!started { next }
/^#pragma|^#ifdef|^#endif|^extern "C"|^}$/ { next }
!in_code && /^\/\*/ {
	flush_block()
	in_comment = 1
}
in_comment {
	text = text comment_line($0) "\n"
	if (/\*\/[ \t]*$/)
		in_comment = 0
	next
}
/^$/ && !in_code {
	flush_block()
	next
}
{
	line = $0
	while (match(line, /\t/)) {
		tab = substr("        ", 1, 8 - (RSTART - 1) % 8)
		line = substr(line, 1, RSTART - 1) tab substr(line, RSTART + 1)
	}
	code = code escaped(line) "\n"
	# Blank lines and comments within braces belong to the declaration.
	in_code = /{$/ || (in_code && !/^}/)
}
END { flush_block() }
