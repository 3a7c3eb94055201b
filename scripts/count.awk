# Adds up the closing lines of a CTest run: ctest -V | awk -f scripts/count.awk
#
# With -V every line of test N starts with "N: "; the verdict is a line "  3/9 Test  #N: name ...
# Passed". A line "PRESET name" starts another run. Failing tests are shown with the end of their
# output, skips with their reasons.
/^PRESET / {
    preset = $2
    delete out
    delete closing
    delete why
    next
}

/^[0-9]+: / {
    n = $1 + 0
    line = $0
    sub(/^[0-9]+: /, "", line)
    if (line ~ /^(Test command|Working Directory|Test timeout|Environment variables| +[A-Z_]+=)/)
        next
    out[n] = out[n] line "\n"
    if (line ~ /^skip: /)
        why[n] = why[n] "    " substr(line, 7) "\n"
    if (line ~ /^[0-9]+ passed, [0-9]+ failed/)
        closing[n] = line
    next
}

/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: / {
    n = $0
    sub(/^.*Test +#/, "", n)
    n += 0
    name = $0
    sub(/^.*#[0-9]+: */, "", name)
    sub(/ .*/, "", name)
    ran++
    closed = n in closing
    split(closing[n], word, /[ ,]+/)
    passed += word[1]
    failed += word[3]
    skipped += word[5]
    good = /Passed/ && closed && word[3] == 0
    if (/Skipped/) {
        if (word[5] == 0)
            skipped++
        good = 1
        if (!(n in why))
            why[n] = "    no reason given\n"
    }
    if (n in why)
        skips = skips preset " " name "\n" why[n]
    if (!good) {
        if (word[3] == 0)
            failed++
        count = split(out[n], lines, "\n")
        printf "---- %s %s: %s\n", preset, name, closed ? "failed" : "crashed, or no closing line"
        for (i = count > 40 ? count - 40 : 1; i < count; i++)
            print "    " lines[i]
    }
    next
}

/No tests were found/ {
    print "---- " preset ": no tests"
    failed++
}

END {
    if (ran == 0)
        failed++
    if (skips != "")
        printf "skipped:\n%s", skips
    printf "%d passed, %d failed", passed, failed
    if (skipped > 0)
        printf ", %d skipped", skipped
    printf "\n"
    exit failed > 0
}
