# Completes mk in fish. mk itself is asked, which knows the names of keys, apps, models and profiles.
function __mk_complete
    set -l found (mk __complete fish -- (commandline -opc) (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        # Files where mk knows nothing.
        __fish_complete_path (commandline -ct)
    end
end
complete --command mk --no-files --keep-order --arguments '(__mk_complete)'
