# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_mk_global_optspecs
    string join \n color= progress= q/quiet v/verbose server= profile= api-key-file= ca-cert= h/help V/version
end

function __fish_mk_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_mk_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_mk_using_subcommand
    set -l cmd (__fish_mk_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c mk -n "__fish_mk_needs_command" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_needs_command" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_needs_command" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_needs_command" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_needs_command" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_needs_command" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_needs_command" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_needs_command" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_needs_command" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_needs_command" -s V -l version -d 'Print version'
complete -c mk -n "__fish_mk_needs_command" -f -a "serve" -d 'Run the server'
complete -c mk -n "__fish_mk_needs_command" -f -a "verify" -d 'Verify a text'
complete -c mk -n "__fish_mk_needs_command" -f -a "eval" -d 'Measure how often the panel is right, by statements with known answers'
complete -c mk -n "__fish_mk_needs_command" -f -a "chat" -d 'Ask a model, once or in a conversation'
complete -c mk -n "__fish_mk_needs_command" -f -a "models" -d 'List the models that can be asked, with what they cost'
complete -c mk -n "__fish_mk_needs_command" -f -a "apps" -d 'Manage apps, which group keys and their usage'
complete -c mk -n "__fish_mk_needs_command" -f -a "keys" -d 'Manage API keys'
complete -c mk -n "__fish_mk_needs_command" -f -a "usage" -d 'Show what was used and what it cost'
complete -c mk -n "__fish_mk_needs_command" -f -a "audit" -d 'Show who changed what'
complete -c mk -n "__fish_mk_needs_command" -f -a "config" -d 'Show configuration, or begin one'
complete -c mk -n "__fish_mk_needs_command" -f -a "login" -d 'Store an API key for a server'
complete -c mk -n "__fish_mk_needs_command" -f -a "logout" -d 'Forget the API keys for a server'
complete -c mk -n "__fish_mk_needs_command" -f -a "whoami" -d 'Show which server and keys are used, and whether the server answers'
complete -c mk -n "__fish_mk_needs_command" -f -a "doctor" -d 'Check this installation: configuration, database, clock, providers, server'
complete -c mk -n "__fish_mk_needs_command" -f -a "backup" -d 'Back up the databases, beside a running server'
complete -c mk -n "__fish_mk_needs_command" -f -a "restore" -d 'Put a backup of the databases back'
complete -c mk -n "__fish_mk_needs_command" -f -a "completions" -d 'Print completions for a shell'
complete -c mk -n "__fish_mk_needs_command" -f -a "man" -d 'Write the manual pages'
complete -c mk -n "__fish_mk_needs_command" -f -a "version" -d 'Print the version'
complete -c mk -n "__fish_mk_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c mk -n "__fish_mk_using_subcommand serve; and not __fish_seen_subcommand_from unit help" -l listen -d 'Address and port to listen on [default: 127.0.0.1:8080]' -r
complete -c mk -n "__fish_mk_using_subcommand serve; and not __fish_seen_subcommand_from unit help" -l config -d 'Configuration file [default: server.toml in the configuration directory]' -r -F
complete -c mk -n "__fish_mk_using_subcommand serve; and not __fish_seen_subcommand_from unit help" -l data-dir -d 'Directory of an SQLite database' -r -F
complete -c mk -n "__fish_mk_using_subcommand serve; and not __fish_seen_subcommand_from unit help" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand serve; and not __fish_seen_subcommand_from unit help" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand serve; and not __fish_seen_subcommand_from unit help" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand serve; and not __fish_seen_subcommand_from unit help" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand serve; and not __fish_seen_subcommand_from unit help" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand serve; and not __fish_seen_subcommand_from unit help" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand serve; and not __fish_seen_subcommand_from unit help" -l sandbox -d 'Simulated models in the place of all providers'
complete -c mk -n "__fish_mk_using_subcommand serve; and not __fish_seen_subcommand_from unit help" -l check -d 'Check the configuration and exit'
complete -c mk -n "__fish_mk_using_subcommand serve; and not __fish_seen_subcommand_from unit help" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand serve; and not __fish_seen_subcommand_from unit help" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand serve; and not __fish_seen_subcommand_from unit help" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand serve; and not __fish_seen_subcommand_from unit help" -f -a "unit" -d 'Print a unit for systemd'
complete -c mk -n "__fish_mk_using_subcommand serve; and not __fish_seen_subcommand_from unit help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c mk -n "__fish_mk_using_subcommand serve; and __fish_seen_subcommand_from unit" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand serve; and __fish_seen_subcommand_from unit" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand serve; and __fish_seen_subcommand_from unit" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand serve; and __fish_seen_subcommand_from unit" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand serve; and __fish_seen_subcommand_from unit" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand serve; and __fish_seen_subcommand_from unit" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand serve; and __fish_seen_subcommand_from unit" -l socket -d 'The unit of a listening socket, which is passed to the server'
complete -c mk -n "__fish_mk_using_subcommand serve; and __fish_seen_subcommand_from unit" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand serve; and __fish_seen_subcommand_from unit" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand serve; and __fish_seen_subcommand_from unit" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand serve; and __fish_seen_subcommand_from help" -f -a "unit" -d 'Print a unit for systemd'
complete -c mk -n "__fish_mk_using_subcommand serve; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c mk -n "__fish_mk_using_subcommand verify" -s f -l file -d 'Verify the text of a file; repeat it for several' -r -F
complete -c mk -n "__fish_mk_using_subcommand verify" -l lines -d 'Verify each line of a file as a statement of its own; `-` for standard input' -r -F
complete -c mk -n "__fish_mk_using_subcommand verify" -l jobs -d 'How many lines or files are verified at a time [default: 4]' -r
complete -c mk -n "__fish_mk_using_subcommand verify" -l max-wait -d 'How long to wait out the server\'s rate limit, per statement [default: 5m with several statements, else 0]' -r
complete -c mk -n "__fish_mk_using_subcommand verify" -l domain -d 'Kind of statement: general, or legal (jurisdiction and date matter, citations are checked) [default: general]' -r -f -a "general\t'Anything'
legal\t'Law: jurisdiction and date matter, citations are checked by themselves'"
complete -c mk -n "__fish_mk_using_subcommand verify" -l min-required -d 'How many models must agree: 2 or 3 [default: 2]' -r
complete -c mk -n "__fish_mk_using_subcommand verify" -l total-models -d 'How many models are asked [default: 3]' -r
complete -c mk -n "__fish_mk_using_subcommand verify" -l as-of -d 'Judge the facts as of this date [default: today]' -r
complete -c mk -n "__fish_mk_using_subcommand verify" -l context -d 'Answer from this text instead of from the models\' knowledge' -r -F
complete -c mk -n "__fish_mk_using_subcommand verify" -l timeout -d 'How long one verification may take, such as 90s or 3m [default: 10m]' -r
complete -c mk -n "__fish_mk_using_subcommand verify" -l view -d 'How results are shown: list or table (a list where the terminal is too narrow for one) [default: list on a terminal, tab-separated lines elsewhere]' -r -f -a "list\t'Claims below each other'
table\t'One claim a row'"
complete -c mk -n "__fish_mk_using_subcommand verify" -l fail-on -d 'What makes the exit code other than 0: false (10), no-consensus (11), unchecked or skipped parts (13); or never [default: false,no-consensus,unchecked]' -r -f -a "false\t'A claim is FALSE'
no-consensus\t'A claim found NO CONSENSUS'
unchecked\t'A part of the text was not checked, as it is over a limit'
skipped\t'A part of the text was skipped, for whatever reason'
never\t'No verdict makes it fail; stands alone'"
complete -c mk -n "__fish_mk_using_subcommand verify" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand verify" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand verify" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand verify" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand verify" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand verify" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand verify" -l sandbox -d 'Simulated models in this process: no server, key or network. They know few facts'
complete -c mk -n "__fish_mk_using_subcommand verify" -l local -d 'The configured providers, called from this process: no server needed'
complete -c mk -n "__fish_mk_using_subcommand verify" -l explain -d 'Ask the models for their reasons, which the list and JSON show'
complete -c mk -n "__fish_mk_using_subcommand verify" -l json -d 'One JSON document, at the end'
complete -c mk -n "__fish_mk_using_subcommand verify" -l jsonl -d 'A line of JSON per claim as it arrives, then a summary'
complete -c mk -n "__fish_mk_using_subcommand verify" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand verify" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand verify" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand eval" -l limit -d 'Take only the first N statements' -r
complete -c mk -n "__fish_mk_using_subcommand eval" -l jobs -d 'How many statements are verified at a time [default: 4]' -r
complete -c mk -n "__fish_mk_using_subcommand eval" -l max-wait -d 'How long to wait out the server\'s rate limit, per statement [default: 5m]' -r
complete -c mk -n "__fish_mk_using_subcommand eval" -l min-accuracy -d 'Fail if fewer than this many percent are right' -r
complete -c mk -n "__fish_mk_using_subcommand eval" -l domain -d 'Kind of statement: general, or legal (jurisdiction and date matter, citations are checked) [default: general]' -r -f -a "general\t'Anything'
legal\t'Law: jurisdiction and date matter, citations are checked by themselves'"
complete -c mk -n "__fish_mk_using_subcommand eval" -l min-required -d 'How many models must agree: 2 or 3 [default: 2]' -r
complete -c mk -n "__fish_mk_using_subcommand eval" -l total-models -d 'How many models are asked [default: 3]' -r
complete -c mk -n "__fish_mk_using_subcommand eval" -l as-of -d 'Judge the facts as of this date [default: today]' -r
complete -c mk -n "__fish_mk_using_subcommand eval" -l context -d 'Answer from this text instead of from the models\' knowledge' -r -F
complete -c mk -n "__fish_mk_using_subcommand eval" -l timeout -d 'How long one verification may take, such as 90s or 3m [default: 10m]' -r
complete -c mk -n "__fish_mk_using_subcommand eval" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand eval" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand eval" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand eval" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand eval" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand eval" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand eval" -l sandbox -d 'Simulated models in this process: no server, key or network. They know few facts'
complete -c mk -n "__fish_mk_using_subcommand eval" -l local -d 'The configured providers, called from this process: no server needed'
complete -c mk -n "__fish_mk_using_subcommand eval" -l json -d 'Print JSON'
complete -c mk -n "__fish_mk_using_subcommand eval" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand eval" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand eval" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand chat" -s m -l model -d 'The model to ask, as `mk models` lists it [default: `MK_MODEL`, then `[chat] model` of config.toml, then the cheapest one listed]' -r
complete -c mk -n "__fish_mk_using_subcommand chat" -l system -d 'What the model is told before anything else' -r
complete -c mk -n "__fish_mk_using_subcommand chat" -l temperature -d 'How freely the model chooses its words, from 0 to 2 [default: the provider\'s]' -r
complete -c mk -n "__fish_mk_using_subcommand chat" -l max-tokens -d 'The most tokens of an answer [default: the provider\'s]' -r
complete -c mk -n "__fish_mk_using_subcommand chat" -l timeout -d 'How long an answer may take, such as 90s or 3m [default: 11m]' -r
complete -c mk -n "__fish_mk_using_subcommand chat" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand chat" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand chat" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand chat" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand chat" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand chat" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand chat" -l no-stream -d 'Print the answer once it is whole'
complete -c mk -n "__fish_mk_using_subcommand chat" -l json -d 'One JSON document, at the end'
complete -c mk -n "__fish_mk_using_subcommand chat" -l sandbox -d 'Simulated models in this process: no server, key or network. They know few facts'
complete -c mk -n "__fish_mk_using_subcommand chat" -l local -d 'The configured providers, called from this process: no server needed'
complete -c mk -n "__fish_mk_using_subcommand chat" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand chat" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand chat" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand models" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand models" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand models" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand models" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand models" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand models" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand models" -l json -d 'Print JSON'
complete -c mk -n "__fish_mk_using_subcommand models" -l sandbox -d 'Simulated models in this process: no server, key or network. They know few facts'
complete -c mk -n "__fish_mk_using_subcommand models" -l local -d 'The configured providers, called from this process: no server needed'
complete -c mk -n "__fish_mk_using_subcommand models" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand models" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand models" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand apps; and not __fish_seen_subcommand_from create list show update statement delete help" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand apps; and not __fish_seen_subcommand_from create list show update statement delete help" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand apps; and not __fish_seen_subcommand_from create list show update statement delete help" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand apps; and not __fish_seen_subcommand_from create list show update statement delete help" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand apps; and not __fish_seen_subcommand_from create list show update statement delete help" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and not __fish_seen_subcommand_from create list show update statement delete help" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and not __fish_seen_subcommand_from create list show update statement delete help" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand apps; and not __fish_seen_subcommand_from create list show update statement delete help" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand apps; and not __fish_seen_subcommand_from create list show update statement delete help" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand apps; and not __fish_seen_subcommand_from create list show update statement delete help" -f -a "create" -d 'Make an app'
complete -c mk -n "__fish_mk_using_subcommand apps; and not __fish_seen_subcommand_from create list show update statement delete help" -f -a "list" -d 'List all apps'
complete -c mk -n "__fish_mk_using_subcommand apps; and not __fish_seen_subcommand_from create list show update statement delete help" -f -a "show" -d 'Show one app'
complete -c mk -n "__fish_mk_using_subcommand apps; and not __fish_seen_subcommand_from create list show update statement delete help" -f -a "update" -d 'Change an app\'s name or budget'
complete -c mk -n "__fish_mk_using_subcommand apps; and not __fish_seen_subcommand_from create list show update statement delete help" -f -a "statement" -d 'Show what an app has used in a month, by service, key and model'
complete -c mk -n "__fish_mk_using_subcommand apps; and not __fish_seen_subcommand_from create list show update statement delete help" -f -a "delete" -d 'Delete an app and revoke its keys, for ever; its usage stays'
complete -c mk -n "__fish_mk_using_subcommand apps; and not __fish_seen_subcommand_from create list show update statement delete help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from create" -l budget-usd -d 'What all its keys together may spend in a calendar month (UTC), in US dollars [default: any amount]' -r
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from create" -l data-dir -d 'Directory of an SQLite database [default: the server\'s database]' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from create" -l config -d 'The server\'s configuration file, which names the database' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from create" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from create" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from create" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from create" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from create" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from create" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from create" -l json -d 'Print JSON'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from create" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from create" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from create" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from list" -l data-dir -d 'Directory of an SQLite database [default: the server\'s database]' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from list" -l config -d 'The server\'s configuration file, which names the database' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from list" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from list" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from list" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from list" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from list" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from list" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from list" -l json -d 'Print JSON'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from list" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from show" -l data-dir -d 'Directory of an SQLite database [default: the server\'s database]' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from show" -l config -d 'The server\'s configuration file, which names the database' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from show" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from show" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from show" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from show" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from show" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from show" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from show" -l json -d 'Print JSON'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from show" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from update" -l name -d 'A new name, which no other app has' -r
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from update" -l budget-usd -d 'What all its keys together may spend in a calendar month (UTC), in US dollars' -r
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from update" -l data-dir -d 'Directory of an SQLite database [default: the server\'s database]' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from update" -l config -d 'The server\'s configuration file, which names the database' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from update" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from update" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from update" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from update" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from update" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from update" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from update" -l no-budget -d 'Let its keys spend any amount'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from update" -l json -d 'Print JSON'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from update" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from update" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from update" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from statement" -l month -d 'Calendar month (UTC), such as 2026-10 [default: this month]' -r
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from statement" -l data-dir -d 'Directory of an SQLite database [default: the server\'s database]' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from statement" -l config -d 'The server\'s configuration file, which names the database' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from statement" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from statement" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from statement" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from statement" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from statement" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from statement" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from statement" -l csv -d 'Print CSV'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from statement" -l json -d 'Print JSON'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from statement" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from statement" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from statement" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from delete" -l data-dir -d 'Directory of an SQLite database [default: the server\'s database]' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from delete" -l config -d 'The server\'s configuration file, which names the database' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from delete" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from delete" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from delete" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from delete" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from delete" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from delete" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from delete" -s y -l yes -d 'Do not ask'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from delete" -l json -d 'Print JSON'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from delete" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from delete" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from help" -f -a "create" -d 'Make an app'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from help" -f -a "list" -d 'List all apps'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show one app'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from help" -f -a "update" -d 'Change an app\'s name or budget'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from help" -f -a "statement" -d 'Show what an app has used in a month, by service, key and model'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from help" -f -a "delete" -d 'Delete an app and revoke its keys, for ever; its usage stays'
complete -c mk -n "__fish_mk_using_subcommand apps; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c mk -n "__fish_mk_using_subcommand keys; and not __fish_seen_subcommand_from create list show update revoke rotate check help" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand keys; and not __fish_seen_subcommand_from create list show update revoke rotate check help" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand keys; and not __fish_seen_subcommand_from create list show update revoke rotate check help" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and not __fish_seen_subcommand_from create list show update revoke rotate check help" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and not __fish_seen_subcommand_from create list show update revoke rotate check help" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and not __fish_seen_subcommand_from create list show update revoke rotate check help" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and not __fish_seen_subcommand_from create list show update revoke rotate check help" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand keys; and not __fish_seen_subcommand_from create list show update revoke rotate check help" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand keys; and not __fish_seen_subcommand_from create list show update revoke rotate check help" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand keys; and not __fish_seen_subcommand_from create list show update revoke rotate check help" -f -a "create" -d 'Make a key; it is printed once, alone on standard output'
complete -c mk -n "__fish_mk_using_subcommand keys; and not __fish_seen_subcommand_from create list show update revoke rotate check help" -f -a "list" -d 'List keys'
complete -c mk -n "__fish_mk_using_subcommand keys; and not __fish_seen_subcommand_from create list show update revoke rotate check help" -f -a "show" -d 'Show one key\'s record'
complete -c mk -n "__fish_mk_using_subcommand keys; and not __fish_seen_subcommand_from create list show update revoke rotate check help" -f -a "update" -d 'Change a key; what is not named stays as it is'
complete -c mk -n "__fish_mk_using_subcommand keys; and not __fish_seen_subcommand_from create list show update revoke rotate check help" -f -a "revoke" -d 'Revoke keys, at once and for ever'
complete -c mk -n "__fish_mk_using_subcommand keys; and not __fish_seen_subcommand_from create list show update revoke rotate check help" -f -a "rotate" -d 'Replace a key by a new one with the same rights'
complete -c mk -n "__fish_mk_using_subcommand keys; and not __fish_seen_subcommand_from create list show update revoke rotate check help" -f -a "check" -d 'Check a key from standard input, a file or the environment'
complete -c mk -n "__fish_mk_using_subcommand keys; and not __fish_seen_subcommand_from create list show update revoke rotate check help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from create" -l service -d 'What it is for: verify, inference or console' -r -f -a "verify\t''
inference\t''
console\t''"
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from create" -l app -d 'The app it belongs to, by name or id [default: `default`, else the oldest]' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from create" -l name -d 'A name to remember it by' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from create" -l expires -d 'When it ends: 90d, 24h, or a date [default: never]' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from create" -l per-minute -d 'Requests in any 60 seconds; 0 is unlimited [default: the server\'s limit]' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from create" -l per-day -d 'Requests in a UTC day; 0 is unlimited [default: the server\'s limit]' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from create" -l address -d 'A network it may be used from, such as 10.0.0.0/8; repeat it for several [default: all]' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from create" -l model -d 'A model it may use: openai/gpt-5.4-mini, or openai/* for a provider\'s; repeat it for several [default: all]' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from create" -l budget-usd -d 'What it may spend in a calendar month (UTC), in US dollars [default: any amount]' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from create" -l data-dir -d 'Directory of an SQLite database [default: the server\'s database]' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from create" -l config -d 'The server\'s configuration file, which names the database' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from create" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from create" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from create" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from create" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from create" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from create" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from create" -l json -d 'Print JSON'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from create" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from create" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from create" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from list" -l app -d 'Only those of this app, by name or id' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from list" -l service -d 'Only those for this service: verify, inference or console' -r -f -a "verify\t''
inference\t''
console\t''"
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from list" -l data-dir -d 'Directory of an SQLite database [default: the server\'s database]' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from list" -l config -d 'The server\'s configuration file, which names the database' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from list" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from list" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from list" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from list" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from list" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from list" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from list" -l all -d 'Also those that are revoked'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from list" -l json -d 'Print JSON'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from list" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from show" -l data-dir -d 'Directory of an SQLite database [default: the server\'s database]' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from show" -l config -d 'The server\'s configuration file, which names the database' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from show" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from show" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from show" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from show" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from show" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from show" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from show" -l json -d 'Print JSON'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from show" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l name -d 'Another name to remember it by' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l expires -d 'When it ends: 90d or 24h from now, or a date' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l per-minute -d 'Requests in any 60 seconds; 0 is unlimited' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l per-day -d 'Requests in a UTC day; 0 is unlimited' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l address -d 'A network it may be used from, such as 10.0.0.0/8, instead of those until now; repeat it for several' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l model -d 'A model it may use: openai/gpt-5.4-mini, or openai/* for a provider\'s, instead of those until now; repeat it for several' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l budget-usd -d 'What it may spend in a calendar month (UTC), in US dollars' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l data-dir -d 'Directory of an SQLite database [default: the server\'s database]' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l config -d 'The server\'s configuration file, which names the database' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l no-name -d 'Take its name away'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l no-expiry -d 'Let it not end by itself'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l default-per-minute -d 'The server\'s limit instead of an own one'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l default-per-day -d 'The server\'s limit instead of an own one'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l all-addresses -d 'Let it be used from everywhere'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l all-models -d 'Let it use all models'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l no-budget -d 'Let it spend any amount'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -l json -d 'Print JSON'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from update" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from revoke" -l data-dir -d 'Directory of an SQLite database [default: the server\'s database]' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from revoke" -l config -d 'The server\'s configuration file, which names the database' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from revoke" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from revoke" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from revoke" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from revoke" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from revoke" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from revoke" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from revoke" -s y -l yes -d 'Do not ask'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from revoke" -l json -d 'Print JSON'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from revoke" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from revoke" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from revoke" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from rotate" -l grace -d 'How long the old key goes on working' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from rotate" -l data-dir -d 'Directory of an SQLite database [default: the server\'s database]' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from rotate" -l config -d 'The server\'s configuration file, which names the database' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from rotate" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from rotate" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from rotate" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from rotate" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from rotate" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from rotate" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from rotate" -l json -d 'Print JSON'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from rotate" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from rotate" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from rotate" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from check" -l data-dir -d 'Directory of an SQLite database [default: the server\'s database]' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from check" -l config -d 'The server\'s configuration file, which names the database' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from check" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from check" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from check" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from check" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from check" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from check" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from check" -l json -d 'Print JSON'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from check" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from check" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from help" -f -a "create" -d 'Make a key; it is printed once, alone on standard output'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from help" -f -a "list" -d 'List keys'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show one key\'s record'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from help" -f -a "update" -d 'Change a key; what is not named stays as it is'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from help" -f -a "revoke" -d 'Revoke keys, at once and for ever'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from help" -f -a "rotate" -d 'Replace a key by a new one with the same rights'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from help" -f -a "check" -d 'Check a key from standard input, a file or the environment'
complete -c mk -n "__fish_mk_using_subcommand keys; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c mk -n "__fish_mk_using_subcommand usage" -l since -d 'The last days, today included, such as 7d or 4w [default: 30d]' -r
complete -c mk -n "__fish_mk_using_subcommand usage" -l from -d 'First day (UTC), such as 2026-11-01 [default: 30 days]' -r
complete -c mk -n "__fish_mk_using_subcommand usage" -l to -d 'Last day (UTC) [default: today]' -r
complete -c mk -n "__fish_mk_using_subcommand usage" -l by -d 'Sum by day, app, key, model or service, or by several of these [default: day]' -r -f -a "day\t''
app\t''
key\t''
model\t''
service\t''"
complete -c mk -n "__fish_mk_using_subcommand usage" -l app -d 'Only of this app, by name or id' -r
complete -c mk -n "__fish_mk_using_subcommand usage" -l key -d 'Only of this key, by id, name or last four characters' -r
complete -c mk -n "__fish_mk_using_subcommand usage" -l model -d 'Only at this model' -r
complete -c mk -n "__fish_mk_using_subcommand usage" -l service -d 'Only of this service: verify or inference' -r -f -a "verify\t''
inference\t''"
complete -c mk -n "__fish_mk_using_subcommand usage" -l data-dir -d 'Directory of an SQLite database [default: the server\'s database]' -r -F
complete -c mk -n "__fish_mk_using_subcommand usage" -l config -d 'The server\'s configuration file, which names the database' -r -F
complete -c mk -n "__fish_mk_using_subcommand usage" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand usage" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand usage" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand usage" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand usage" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand usage" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand usage" -l csv -d 'Print CSV'
complete -c mk -n "__fish_mk_using_subcommand usage" -l json -d 'Print JSON'
complete -c mk -n "__fish_mk_using_subcommand usage" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand usage" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand usage" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand audit" -l app -d 'Only what was done to this app and its keys, by name or id' -r
complete -c mk -n "__fish_mk_using_subcommand audit" -l key -d 'Only what was done to this key, by id, name or last four characters' -r
complete -c mk -n "__fish_mk_using_subcommand audit" -l actor -d 'Only what was done with this console key, by id, name or last four characters' -r
complete -c mk -n "__fish_mk_using_subcommand audit" -l action -d 'Only what was done in this way, such as key.revoked' -r -f -a "app.created\t''
app.updated\t''
app.deleted\t''
key.created\t''
key.updated\t''
key.revoked\t''
key.rotated\t''
session.created\t''
session.ended\t''
session.refused\t''
console.set_up\t''"
complete -c mk -n "__fish_mk_using_subcommand audit" -l limit -d 'The most entries, from the newest on; 0 shows all [default: 50]' -r
complete -c mk -n "__fish_mk_using_subcommand audit" -l data-dir -d 'Directory of an SQLite database [default: the server\'s database]' -r -F
complete -c mk -n "__fish_mk_using_subcommand audit" -l config -d 'The server\'s configuration file, which names the database' -r -F
complete -c mk -n "__fish_mk_using_subcommand audit" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand audit" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand audit" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand audit" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand audit" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand audit" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand audit" -l json -d 'Print JSON'
complete -c mk -n "__fish_mk_using_subcommand audit" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand audit" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand audit" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand config; and not __fish_seen_subcommand_from init path list help" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand config; and not __fish_seen_subcommand_from init path list help" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand config; and not __fish_seen_subcommand_from init path list help" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand config; and not __fish_seen_subcommand_from init path list help" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand config; and not __fish_seen_subcommand_from init path list help" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand config; and not __fish_seen_subcommand_from init path list help" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand config; and not __fish_seen_subcommand_from init path list help" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand config; and not __fish_seen_subcommand_from init path list help" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand config; and not __fish_seen_subcommand_from init path list help" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand config; and not __fish_seen_subcommand_from init path list help" -f -a "init" -d 'Write an example of the server\'s file, in which nothing is set yet'
complete -c mk -n "__fish_mk_using_subcommand config; and not __fish_seen_subcommand_from init path list help" -f -a "path" -d 'Say where files are looked for'
complete -c mk -n "__fish_mk_using_subcommand config; and not __fish_seen_subcommand_from init path list help" -f -a "list" -d 'List every value'
complete -c mk -n "__fish_mk_using_subcommand config; and not __fish_seen_subcommand_from init path list help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from init" -l config -d 'Where to [default: server.toml in the configuration directory]' -r -F
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from init" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from init" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from init" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from init" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from init" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from init" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from init" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from init" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from init" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from path" -l config -d 'The server\'s configuration file' -r -F
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from path" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from path" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from path" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from path" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from path" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from path" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from path" -l json -d 'Print JSON'
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from path" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from path" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from path" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from list" -l config -d 'The server\'s configuration file' -r -F
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from list" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from list" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from list" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from list" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from list" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from list" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from list" -l origin -d 'Also say where each value comes from'
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from list" -l json -d 'Print JSON'
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from list" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "init" -d 'Write an example of the server\'s file, in which nothing is set yet'
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "path" -d 'Say where files are looked for'
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "list" -d 'List every value'
complete -c mk -n "__fish_mk_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c mk -n "__fish_mk_using_subcommand login" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand login" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand login" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand login" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand login" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand login" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand login" -l no-check -d 'Store the key without asking the server about it'
complete -c mk -n "__fish_mk_using_subcommand login" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand login" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand login" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand logout" -l service -d 'Only the key for this service: verify, inference or console' -r -f -a "verify\t''
inference\t''
console\t''"
complete -c mk -n "__fish_mk_using_subcommand logout" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand logout" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand logout" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand logout" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand logout" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand logout" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand logout" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand logout" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand logout" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand whoami" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand whoami" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand whoami" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand whoami" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand whoami" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand whoami" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand whoami" -l json -d 'Print JSON'
complete -c mk -n "__fish_mk_using_subcommand whoami" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand whoami" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand whoami" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand doctor" -l data-dir -d 'Directory of an SQLite database [default: the server\'s database]' -r -F
complete -c mk -n "__fish_mk_using_subcommand doctor" -l config -d 'The server\'s configuration file, which names the database' -r -F
complete -c mk -n "__fish_mk_using_subcommand doctor" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand doctor" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand doctor" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand doctor" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand doctor" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand doctor" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand doctor" -l json -d 'Print JSON'
complete -c mk -n "__fish_mk_using_subcommand doctor" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand doctor" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand backup" -l data-dir -d 'Directory of an SQLite database [default: the server\'s database]' -r -F
complete -c mk -n "__fish_mk_using_subcommand backup" -l config -d 'The server\'s configuration file, which names the database' -r -F
complete -c mk -n "__fish_mk_using_subcommand backup" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand backup" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand backup" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand backup" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand backup" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand backup" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand backup" -l force -d 'Replace the file if it exists'
complete -c mk -n "__fish_mk_using_subcommand backup" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand backup" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand backup" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand restore" -l data-dir -d 'Directory of an SQLite database [default: the server\'s database]' -r -F
complete -c mk -n "__fish_mk_using_subcommand restore" -l config -d 'The server\'s configuration file, which names the database' -r -F
complete -c mk -n "__fish_mk_using_subcommand restore" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand restore" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand restore" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand restore" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand restore" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand restore" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand restore" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand restore" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand restore" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand completions" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand completions" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand completions" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand completions" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand completions" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand completions" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand completions" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand completions" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand completions" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand man" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand man" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand man" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand man" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand man" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand man" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand man" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand man" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand man" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand version" -l color -d 'When to colour: auto, always or never' -r -f -a "auto\t'On terminals, as the environment allows'
always\t'Also into pipes and files'
never\t'Not at all'"
complete -c mk -n "__fish_mk_using_subcommand version" -l progress -d 'How to show progress: auto, bars, lines (for logs and screen readers) or none' -r -f -a "auto\t'Bars on a terminal, nothing elsewhere'
bars\t'Bars'
lines\t'One line a step, as logs and screen readers want it'
none\t'Nothing'"
complete -c mk -n "__fish_mk_using_subcommand version" -l server -d 'Base address of the server [default: port 8080 of this machine]' -r
complete -c mk -n "__fish_mk_using_subcommand version" -l profile -d 'Profile of config.toml to use' -r
complete -c mk -n "__fish_mk_using_subcommand version" -l api-key-file -d 'File that holds the API key' -r -F
complete -c mk -n "__fish_mk_using_subcommand version" -l ca-cert -d 'PEM file of further certificate authorities to trust' -r -F
complete -c mk -n "__fish_mk_using_subcommand version" -l json -d 'Print JSON'
complete -c mk -n "__fish_mk_using_subcommand version" -s q -l quiet -d 'Print nothing but errors and what --json asks for'
complete -c mk -n "__fish_mk_using_subcommand version" -s v -l verbose -d 'Tell causes and request ids of errors'
complete -c mk -n "__fish_mk_using_subcommand version" -s h -l help -d 'Print help'
complete -c mk -n "__fish_mk_using_subcommand help; and not __fish_seen_subcommand_from serve verify eval chat models apps keys usage audit config login logout whoami doctor backup restore completions man version help" -f -a "serve" -d 'Run the server'
complete -c mk -n "__fish_mk_using_subcommand help; and not __fish_seen_subcommand_from serve verify eval chat models apps keys usage audit config login logout whoami doctor backup restore completions man version help" -f -a "verify" -d 'Verify a text'
complete -c mk -n "__fish_mk_using_subcommand help; and not __fish_seen_subcommand_from serve verify eval chat models apps keys usage audit config login logout whoami doctor backup restore completions man version help" -f -a "eval" -d 'Measure how often the panel is right, by statements with known answers'
complete -c mk -n "__fish_mk_using_subcommand help; and not __fish_seen_subcommand_from serve verify eval chat models apps keys usage audit config login logout whoami doctor backup restore completions man version help" -f -a "chat" -d 'Ask a model, once or in a conversation'
complete -c mk -n "__fish_mk_using_subcommand help; and not __fish_seen_subcommand_from serve verify eval chat models apps keys usage audit config login logout whoami doctor backup restore completions man version help" -f -a "models" -d 'List the models that can be asked, with what they cost'
complete -c mk -n "__fish_mk_using_subcommand help; and not __fish_seen_subcommand_from serve verify eval chat models apps keys usage audit config login logout whoami doctor backup restore completions man version help" -f -a "apps" -d 'Manage apps, which group keys and their usage'
complete -c mk -n "__fish_mk_using_subcommand help; and not __fish_seen_subcommand_from serve verify eval chat models apps keys usage audit config login logout whoami doctor backup restore completions man version help" -f -a "keys" -d 'Manage API keys'
complete -c mk -n "__fish_mk_using_subcommand help; and not __fish_seen_subcommand_from serve verify eval chat models apps keys usage audit config login logout whoami doctor backup restore completions man version help" -f -a "usage" -d 'Show what was used and what it cost'
complete -c mk -n "__fish_mk_using_subcommand help; and not __fish_seen_subcommand_from serve verify eval chat models apps keys usage audit config login logout whoami doctor backup restore completions man version help" -f -a "audit" -d 'Show who changed what'
complete -c mk -n "__fish_mk_using_subcommand help; and not __fish_seen_subcommand_from serve verify eval chat models apps keys usage audit config login logout whoami doctor backup restore completions man version help" -f -a "config" -d 'Show configuration, or begin one'
complete -c mk -n "__fish_mk_using_subcommand help; and not __fish_seen_subcommand_from serve verify eval chat models apps keys usage audit config login logout whoami doctor backup restore completions man version help" -f -a "login" -d 'Store an API key for a server'
complete -c mk -n "__fish_mk_using_subcommand help; and not __fish_seen_subcommand_from serve verify eval chat models apps keys usage audit config login logout whoami doctor backup restore completions man version help" -f -a "logout" -d 'Forget the API keys for a server'
complete -c mk -n "__fish_mk_using_subcommand help; and not __fish_seen_subcommand_from serve verify eval chat models apps keys usage audit config login logout whoami doctor backup restore completions man version help" -f -a "whoami" -d 'Show which server and keys are used, and whether the server answers'
complete -c mk -n "__fish_mk_using_subcommand help; and not __fish_seen_subcommand_from serve verify eval chat models apps keys usage audit config login logout whoami doctor backup restore completions man version help" -f -a "doctor" -d 'Check this installation: configuration, database, clock, providers, server'
complete -c mk -n "__fish_mk_using_subcommand help; and not __fish_seen_subcommand_from serve verify eval chat models apps keys usage audit config login logout whoami doctor backup restore completions man version help" -f -a "backup" -d 'Back up the databases, beside a running server'
complete -c mk -n "__fish_mk_using_subcommand help; and not __fish_seen_subcommand_from serve verify eval chat models apps keys usage audit config login logout whoami doctor backup restore completions man version help" -f -a "restore" -d 'Put a backup of the databases back'
complete -c mk -n "__fish_mk_using_subcommand help; and not __fish_seen_subcommand_from serve verify eval chat models apps keys usage audit config login logout whoami doctor backup restore completions man version help" -f -a "completions" -d 'Print completions for a shell'
complete -c mk -n "__fish_mk_using_subcommand help; and not __fish_seen_subcommand_from serve verify eval chat models apps keys usage audit config login logout whoami doctor backup restore completions man version help" -f -a "man" -d 'Write the manual pages'
complete -c mk -n "__fish_mk_using_subcommand help; and not __fish_seen_subcommand_from serve verify eval chat models apps keys usage audit config login logout whoami doctor backup restore completions man version help" -f -a "version" -d 'Print the version'
complete -c mk -n "__fish_mk_using_subcommand help; and not __fish_seen_subcommand_from serve verify eval chat models apps keys usage audit config login logout whoami doctor backup restore completions man version help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c mk -n "__fish_mk_using_subcommand help; and __fish_seen_subcommand_from serve" -f -a "unit" -d 'Print a unit for systemd'
complete -c mk -n "__fish_mk_using_subcommand help; and __fish_seen_subcommand_from apps" -f -a "create" -d 'Make an app'
complete -c mk -n "__fish_mk_using_subcommand help; and __fish_seen_subcommand_from apps" -f -a "list" -d 'List all apps'
complete -c mk -n "__fish_mk_using_subcommand help; and __fish_seen_subcommand_from apps" -f -a "show" -d 'Show one app'
complete -c mk -n "__fish_mk_using_subcommand help; and __fish_seen_subcommand_from apps" -f -a "update" -d 'Change an app\'s name or budget'
complete -c mk -n "__fish_mk_using_subcommand help; and __fish_seen_subcommand_from apps" -f -a "statement" -d 'Show what an app has used in a month, by service, key and model'
complete -c mk -n "__fish_mk_using_subcommand help; and __fish_seen_subcommand_from apps" -f -a "delete" -d 'Delete an app and revoke its keys, for ever; its usage stays'
complete -c mk -n "__fish_mk_using_subcommand help; and __fish_seen_subcommand_from keys" -f -a "create" -d 'Make a key; it is printed once, alone on standard output'
complete -c mk -n "__fish_mk_using_subcommand help; and __fish_seen_subcommand_from keys" -f -a "list" -d 'List keys'
complete -c mk -n "__fish_mk_using_subcommand help; and __fish_seen_subcommand_from keys" -f -a "show" -d 'Show one key\'s record'
complete -c mk -n "__fish_mk_using_subcommand help; and __fish_seen_subcommand_from keys" -f -a "update" -d 'Change a key; what is not named stays as it is'
complete -c mk -n "__fish_mk_using_subcommand help; and __fish_seen_subcommand_from keys" -f -a "revoke" -d 'Revoke keys, at once and for ever'
complete -c mk -n "__fish_mk_using_subcommand help; and __fish_seen_subcommand_from keys" -f -a "rotate" -d 'Replace a key by a new one with the same rights'
complete -c mk -n "__fish_mk_using_subcommand help; and __fish_seen_subcommand_from keys" -f -a "check" -d 'Check a key from standard input, a file or the environment'
complete -c mk -n "__fish_mk_using_subcommand help; and __fish_seen_subcommand_from config" -f -a "init" -d 'Write an example of the server\'s file, in which nothing is set yet'
complete -c mk -n "__fish_mk_using_subcommand help; and __fish_seen_subcommand_from config" -f -a "path" -d 'Say where files are looked for'
complete -c mk -n "__fish_mk_using_subcommand help; and __fish_seen_subcommand_from config" -f -a "list" -d 'List every value'
