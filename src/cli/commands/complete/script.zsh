#compdef mk
# Completes mk in zsh. mk itself is asked, which knows the names of keys, apps, models and profiles.
_mk() {
    local -a found
    found=(${(f)"$(mk __complete zsh -- "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)"})
    if (( $#found )); then
        _describe -V mk found
    else
        # Files where mk knows nothing.
        [[ $PREFIX == --*=* ]] && compset -P '*='
        _files
    fi
}
if [[ $funcstack[1] == _mk ]]; then
    _mk "$@"
else
    compdef _mk mk
fi
