# Completes mk in bash. mk itself is asked, which knows the names of keys, apps, models and profiles.
_mk() {
    local line
    COMPREPLY=()
    # Up to the cursor, as bash's own words are cut at colons and equals signs; and the word that is replaced.
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <(mk __complete bash -- "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null)
}
# Files where mk knows nothing.
complete -o bashdefault -o default -o nosort -F _mk mk 2>/dev/null || complete -o bashdefault -o default -F _mk mk
