
use builtin;
use str;

set edit:completion:arg-completer[mk] = {|@words|
    fn spaces {|n|
        builtin:repeat $n ' ' | str:join ''
    }
    fn cand {|text desc|
        edit:complex-candidate $text &display=$text' '(spaces (- 14 (wcswidth $text)))$desc
    }
    var command = 'mk'
    for word $words[1..-1] {
        if (str:has-prefix $word '-') {
            break
        }
        set command = $command';'$word
    }
    var completions = [
        &'mk'= {
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
            cand serve 'Run the server'
            cand verify 'Verify a text'
            cand eval 'Measure how often the panel is right, by statements with known answers'
            cand chat 'Ask a model, once or in a conversation'
            cand models 'List the models that can be asked, with what they cost'
            cand apps 'Manage apps, which group keys and their usage'
            cand keys 'Manage API keys'
            cand usage 'Show what was used and what it cost'
            cand audit 'Show who changed what'
            cand config 'Show configuration, or begin one'
            cand login 'Store an API key for a server'
            cand logout 'Forget the API keys for a server'
            cand whoami 'Show which server and keys are used, and whether the server answers'
            cand doctor 'Check this installation: configuration, database, clock, providers, server'
            cand backup 'Back up the databases, beside a running server'
            cand restore 'Put a backup of the databases back'
            cand completions 'Print completions for a shell'
            cand man 'Write the manual pages'
            cand version 'Print the version'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'mk;serve'= {
            cand --listen 'Address and port to listen on [default: 127.0.0.1:8080]'
            cand --config 'Configuration file [default: server.toml in the configuration directory]'
            cand --data-dir 'Directory of an SQLite database'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --sandbox 'Simulated models in the place of all providers'
            cand --check 'Check the configuration and exit'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
            cand unit 'Print a unit for systemd'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'mk;serve;unit'= {
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --socket 'The unit of a listening socket, which is passed to the server'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;serve;help'= {
            cand unit 'Print a unit for systemd'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'mk;serve;help;unit'= {
        }
        &'mk;serve;help;help'= {
        }
        &'mk;verify'= {
            cand -f 'Verify the text of a file; repeat it for several'
            cand --file 'Verify the text of a file; repeat it for several'
            cand --lines 'Verify each line of a file as a statement of its own; `-` for standard input'
            cand --jobs 'How many lines or files are verified at a time [default: 4]'
            cand --max-wait 'How long to wait out the server''s rate limit, per statement [default: 5m with several statements, else 0]'
            cand --domain 'Kind of statement: general, or legal (jurisdiction and date matter, citations are checked) [default: general]'
            cand --min-required 'How many models must agree: 2 or 3 [default: 2]'
            cand --total-models 'How many models are asked [default: 3]'
            cand --as-of 'Judge the facts as of this date [default: today]'
            cand --context 'Answer from this text instead of from the models'' knowledge'
            cand --timeout 'How long one verification may take, such as 90s or 3m [default: 10m]'
            cand --view 'How results are shown: list or table (a list where the terminal is too narrow for one) [default: list on a terminal, tab-separated lines elsewhere]'
            cand --fail-on 'What makes the exit code other than 0: false (10), no-consensus (11), unchecked or skipped parts (13); or never [default: false,no-consensus,unchecked]'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --text 'Take every argument as a text, also one that names a file'
            cand --sandbox 'Simulated models in this process: no server, key or network. They know few facts'
            cand --local 'The configured providers, called from this process: no server needed'
            cand --explain 'Ask the models for their reasons, which the list and JSON show'
            cand --json 'One JSON document, at the end'
            cand --jsonl 'A line of JSON per claim as it arrives, then a summary'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;eval'= {
            cand --limit 'Take only the first N statements'
            cand --jobs 'How many statements are verified at a time [default: 4]'
            cand --max-wait 'How long to wait out the server''s rate limit, per statement [default: 5m]'
            cand --min-accuracy 'Fail if fewer than this many percent are right'
            cand --domain 'Kind of statement: general, or legal (jurisdiction and date matter, citations are checked) [default: general]'
            cand --min-required 'How many models must agree: 2 or 3 [default: 2]'
            cand --total-models 'How many models are asked [default: 3]'
            cand --as-of 'Judge the facts as of this date [default: today]'
            cand --context 'Answer from this text instead of from the models'' knowledge'
            cand --timeout 'How long one verification may take, such as 90s or 3m [default: 10m]'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --sandbox 'Simulated models in this process: no server, key or network. They know few facts'
            cand --local 'The configured providers, called from this process: no server needed'
            cand --json 'Print JSON'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;chat'= {
            cand -m 'The model to ask, as `mk models` lists it [default: `MK_MODEL`, then `[chat] model` of config.toml, then the cheapest one listed]'
            cand --model 'The model to ask, as `mk models` lists it [default: `MK_MODEL`, then `[chat] model` of config.toml, then the cheapest one listed]'
            cand --system 'What the model is told before anything else'
            cand --temperature 'How freely the model chooses its words, from 0 to 2 [default: the provider''s]'
            cand --max-tokens 'The most tokens of an answer [default: the provider''s]'
            cand --timeout 'How long an answer may take, such as 90s or 3m [default: 11m]'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --no-stream 'Print the answer once it is whole'
            cand --json 'One JSON document, at the end'
            cand --sandbox 'Simulated models in this process: no server, key or network. They know few facts'
            cand --local 'The configured providers, called from this process: no server needed'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;models'= {
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --json 'Print JSON'
            cand --sandbox 'Simulated models in this process: no server, key or network. They know few facts'
            cand --local 'The configured providers, called from this process: no server needed'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;apps'= {
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
            cand create 'Make an app'
            cand list 'List all apps'
            cand show 'Show one app'
            cand update 'Change an app''s name or budget'
            cand statement 'Show what an app has used in a month, by service, key and model'
            cand delete 'Delete an app and revoke its keys, for ever; its usage stays'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'mk;apps;create'= {
            cand --budget-usd 'What all its keys together may spend in a calendar month (UTC), in US dollars [default: any amount]'
            cand --data-dir 'Directory of an SQLite database [default: the server''s database]'
            cand --config 'The server''s configuration file, which names the database'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --json 'Print JSON'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;apps;list'= {
            cand --data-dir 'Directory of an SQLite database [default: the server''s database]'
            cand --config 'The server''s configuration file, which names the database'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --json 'Print JSON'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;apps;show'= {
            cand --data-dir 'Directory of an SQLite database [default: the server''s database]'
            cand --config 'The server''s configuration file, which names the database'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --json 'Print JSON'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;apps;update'= {
            cand --name 'A new name, which no other app has'
            cand --budget-usd 'What all its keys together may spend in a calendar month (UTC), in US dollars'
            cand --data-dir 'Directory of an SQLite database [default: the server''s database]'
            cand --config 'The server''s configuration file, which names the database'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --no-budget 'Let its keys spend any amount'
            cand --json 'Print JSON'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;apps;statement'= {
            cand --month 'Calendar month (UTC), such as 2026-10 [default: this month]'
            cand --data-dir 'Directory of an SQLite database [default: the server''s database]'
            cand --config 'The server''s configuration file, which names the database'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --csv 'Print CSV'
            cand --json 'Print JSON'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;apps;delete'= {
            cand --data-dir 'Directory of an SQLite database [default: the server''s database]'
            cand --config 'The server''s configuration file, which names the database'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand -y 'Do not ask'
            cand --yes 'Do not ask'
            cand --json 'Print JSON'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;apps;help'= {
            cand create 'Make an app'
            cand list 'List all apps'
            cand show 'Show one app'
            cand update 'Change an app''s name or budget'
            cand statement 'Show what an app has used in a month, by service, key and model'
            cand delete 'Delete an app and revoke its keys, for ever; its usage stays'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'mk;apps;help;create'= {
        }
        &'mk;apps;help;list'= {
        }
        &'mk;apps;help;show'= {
        }
        &'mk;apps;help;update'= {
        }
        &'mk;apps;help;statement'= {
        }
        &'mk;apps;help;delete'= {
        }
        &'mk;apps;help;help'= {
        }
        &'mk;keys'= {
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
            cand create 'Make a key; it is printed once, alone on standard output'
            cand list 'List keys'
            cand show 'Show one key''s record'
            cand update 'Change a key; what is not named stays as it is'
            cand revoke 'Revoke keys, at once and for ever'
            cand rotate 'Replace a key by a new one with the same rights'
            cand check 'Check a key from standard input, a file or the environment'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'mk;keys;create'= {
            cand --service 'What it is for: verify, inference or console'
            cand --app 'The app it belongs to, by name or id [default: `default`, else the oldest]'
            cand --name 'A name to remember it by'
            cand --expires 'When it ends: 90d, 24h, or a date [default: never]'
            cand --per-minute 'Requests in any 60 seconds; 0 is unlimited [default: the server''s limit]'
            cand --per-day 'Requests in a UTC day; 0 is unlimited [default: the server''s limit]'
            cand --address 'A network it may be used from, such as 10.0.0.0/8; repeat it for several [default: all]'
            cand --model 'A model it may use: openai/gpt-5.4-mini, or openai/* for a provider''s; repeat it for several [default: all]'
            cand --budget-usd 'What it may spend in a calendar month (UTC), in US dollars [default: any amount]'
            cand --data-dir 'Directory of an SQLite database [default: the server''s database]'
            cand --config 'The server''s configuration file, which names the database'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --json 'Print JSON'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;keys;list'= {
            cand --app 'Only those of this app, by name or id'
            cand --service 'Only those for this service: verify, inference or console'
            cand --data-dir 'Directory of an SQLite database [default: the server''s database]'
            cand --config 'The server''s configuration file, which names the database'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --all 'Also those that are revoked'
            cand --json 'Print JSON'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;keys;show'= {
            cand --data-dir 'Directory of an SQLite database [default: the server''s database]'
            cand --config 'The server''s configuration file, which names the database'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --json 'Print JSON'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;keys;update'= {
            cand --name 'Another name to remember it by'
            cand --expires 'When it ends: 90d or 24h from now, or a date'
            cand --per-minute 'Requests in any 60 seconds; 0 is unlimited'
            cand --per-day 'Requests in a UTC day; 0 is unlimited'
            cand --address 'A network it may be used from, such as 10.0.0.0/8, instead of those until now; repeat it for several'
            cand --model 'A model it may use: openai/gpt-5.4-mini, or openai/* for a provider''s, instead of those until now; repeat it for several'
            cand --budget-usd 'What it may spend in a calendar month (UTC), in US dollars'
            cand --data-dir 'Directory of an SQLite database [default: the server''s database]'
            cand --config 'The server''s configuration file, which names the database'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --no-name 'Take its name away'
            cand --no-expiry 'Let it not end by itself'
            cand --default-per-minute 'The server''s limit instead of an own one'
            cand --default-per-day 'The server''s limit instead of an own one'
            cand --all-addresses 'Let it be used from everywhere'
            cand --all-models 'Let it use all models'
            cand --no-budget 'Let it spend any amount'
            cand --json 'Print JSON'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;keys;revoke'= {
            cand --data-dir 'Directory of an SQLite database [default: the server''s database]'
            cand --config 'The server''s configuration file, which names the database'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand -y 'Do not ask'
            cand --yes 'Do not ask'
            cand --json 'Print JSON'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;keys;rotate'= {
            cand --grace 'How long the old key goes on working'
            cand --data-dir 'Directory of an SQLite database [default: the server''s database]'
            cand --config 'The server''s configuration file, which names the database'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --json 'Print JSON'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;keys;check'= {
            cand --data-dir 'Directory of an SQLite database [default: the server''s database]'
            cand --config 'The server''s configuration file, which names the database'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --json 'Print JSON'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;keys;help'= {
            cand create 'Make a key; it is printed once, alone on standard output'
            cand list 'List keys'
            cand show 'Show one key''s record'
            cand update 'Change a key; what is not named stays as it is'
            cand revoke 'Revoke keys, at once and for ever'
            cand rotate 'Replace a key by a new one with the same rights'
            cand check 'Check a key from standard input, a file or the environment'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'mk;keys;help;create'= {
        }
        &'mk;keys;help;list'= {
        }
        &'mk;keys;help;show'= {
        }
        &'mk;keys;help;update'= {
        }
        &'mk;keys;help;revoke'= {
        }
        &'mk;keys;help;rotate'= {
        }
        &'mk;keys;help;check'= {
        }
        &'mk;keys;help;help'= {
        }
        &'mk;usage'= {
            cand --since 'The last days, today included, such as 7d or 4w [default: 30d]'
            cand --from 'First day (UTC), such as 2026-11-01 [default: 30 days]'
            cand --to 'Last day (UTC) [default: today]'
            cand --by 'Sum by day, app, key, model or service, or by several of these [default: day]'
            cand --app 'Only of this app, by name or id'
            cand --key 'Only of this key, by id, name or last four characters'
            cand --model 'Only at this model'
            cand --service 'Only of this service: verify or inference'
            cand --data-dir 'Directory of an SQLite database [default: the server''s database]'
            cand --config 'The server''s configuration file, which names the database'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --csv 'Print CSV'
            cand --json 'Print JSON'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;audit'= {
            cand --app 'Only what was done to this app and its keys, by name or id'
            cand --key 'Only what was done to this key, by id, name or last four characters'
            cand --actor 'Only what was done with this console key, by id, name or last four characters'
            cand --action 'Only what was done in this way, such as key.revoked'
            cand --limit 'The most entries, from the newest on; 0 shows all [default: 50]'
            cand --data-dir 'Directory of an SQLite database [default: the server''s database]'
            cand --config 'The server''s configuration file, which names the database'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --json 'Print JSON'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;config'= {
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
            cand init 'Write an example of the server''s file, in which nothing is set yet'
            cand path 'Say where files are looked for'
            cand list 'List every value'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'mk;config;init'= {
            cand --config 'Where to [default: server.toml in the configuration directory]'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;config;path'= {
            cand --config 'The server''s configuration file'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --json 'Print JSON'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;config;list'= {
            cand --config 'The server''s configuration file'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --origin 'Also say where each value comes from'
            cand --json 'Print JSON'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;config;help'= {
            cand init 'Write an example of the server''s file, in which nothing is set yet'
            cand path 'Say where files are looked for'
            cand list 'List every value'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'mk;config;help;init'= {
        }
        &'mk;config;help;path'= {
        }
        &'mk;config;help;list'= {
        }
        &'mk;config;help;help'= {
        }
        &'mk;login'= {
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --no-check 'Store the key without asking the server about it'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;logout'= {
            cand --service 'Only the key for this service: verify, inference or console'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;whoami'= {
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --json 'Print JSON'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;doctor'= {
            cand --data-dir 'Directory of an SQLite database [default: the server''s database]'
            cand --config 'The server''s configuration file, which names the database'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --json 'Print JSON'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;backup'= {
            cand --data-dir 'Directory of an SQLite database [default: the server''s database]'
            cand --config 'The server''s configuration file, which names the database'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --force 'Replace the file if it exists'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;restore'= {
            cand --data-dir 'Directory of an SQLite database [default: the server''s database]'
            cand --config 'The server''s configuration file, which names the database'
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;completions'= {
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;man'= {
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;version'= {
            cand --color 'When to colour: auto, always or never'
            cand --progress 'How to show progress: auto, bars, lines (for logs and screen readers) or none'
            cand --server 'Base address of the server [default: port 8080 of this machine]'
            cand --profile 'Profile of config.toml to use'
            cand --api-key-file 'File that holds the API key'
            cand --ca-cert 'PEM file of further certificate authorities to trust'
            cand --json 'Print JSON'
            cand -q 'Print nothing but errors and what --json asks for'
            cand --quiet 'Print nothing but errors and what --json asks for'
            cand -v 'Tell causes and request ids of errors'
            cand --verbose 'Tell causes and request ids of errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'mk;help'= {
            cand serve 'Run the server'
            cand verify 'Verify a text'
            cand eval 'Measure how often the panel is right, by statements with known answers'
            cand chat 'Ask a model, once or in a conversation'
            cand models 'List the models that can be asked, with what they cost'
            cand apps 'Manage apps, which group keys and their usage'
            cand keys 'Manage API keys'
            cand usage 'Show what was used and what it cost'
            cand audit 'Show who changed what'
            cand config 'Show configuration, or begin one'
            cand login 'Store an API key for a server'
            cand logout 'Forget the API keys for a server'
            cand whoami 'Show which server and keys are used, and whether the server answers'
            cand doctor 'Check this installation: configuration, database, clock, providers, server'
            cand backup 'Back up the databases, beside a running server'
            cand restore 'Put a backup of the databases back'
            cand completions 'Print completions for a shell'
            cand man 'Write the manual pages'
            cand version 'Print the version'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'mk;help;serve'= {
            cand unit 'Print a unit for systemd'
        }
        &'mk;help;serve;unit'= {
        }
        &'mk;help;verify'= {
        }
        &'mk;help;eval'= {
        }
        &'mk;help;chat'= {
        }
        &'mk;help;models'= {
        }
        &'mk;help;apps'= {
            cand create 'Make an app'
            cand list 'List all apps'
            cand show 'Show one app'
            cand update 'Change an app''s name or budget'
            cand statement 'Show what an app has used in a month, by service, key and model'
            cand delete 'Delete an app and revoke its keys, for ever; its usage stays'
        }
        &'mk;help;apps;create'= {
        }
        &'mk;help;apps;list'= {
        }
        &'mk;help;apps;show'= {
        }
        &'mk;help;apps;update'= {
        }
        &'mk;help;apps;statement'= {
        }
        &'mk;help;apps;delete'= {
        }
        &'mk;help;keys'= {
            cand create 'Make a key; it is printed once, alone on standard output'
            cand list 'List keys'
            cand show 'Show one key''s record'
            cand update 'Change a key; what is not named stays as it is'
            cand revoke 'Revoke keys, at once and for ever'
            cand rotate 'Replace a key by a new one with the same rights'
            cand check 'Check a key from standard input, a file or the environment'
        }
        &'mk;help;keys;create'= {
        }
        &'mk;help;keys;list'= {
        }
        &'mk;help;keys;show'= {
        }
        &'mk;help;keys;update'= {
        }
        &'mk;help;keys;revoke'= {
        }
        &'mk;help;keys;rotate'= {
        }
        &'mk;help;keys;check'= {
        }
        &'mk;help;usage'= {
        }
        &'mk;help;audit'= {
        }
        &'mk;help;config'= {
            cand init 'Write an example of the server''s file, in which nothing is set yet'
            cand path 'Say where files are looked for'
            cand list 'List every value'
        }
        &'mk;help;config;init'= {
        }
        &'mk;help;config;path'= {
        }
        &'mk;help;config;list'= {
        }
        &'mk;help;login'= {
        }
        &'mk;help;logout'= {
        }
        &'mk;help;whoami'= {
        }
        &'mk;help;doctor'= {
        }
        &'mk;help;backup'= {
        }
        &'mk;help;restore'= {
        }
        &'mk;help;completions'= {
        }
        &'mk;help;man'= {
        }
        &'mk;help;version'= {
        }
        &'mk;help;help'= {
        }
    ]
    $completions[$command]
}
