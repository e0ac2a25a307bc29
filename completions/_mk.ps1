
using namespace System.Management.Automation
using namespace System.Management.Automation.Language

Register-ArgumentCompleter -Native -CommandName 'mk' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $commandElements = $commandAst.CommandElements
    $command = @(
        'mk'
        for ($i = 1; $i -lt $commandElements.Count; $i++) {
            $element = $commandElements[$i]
            if ($element -isnot [StringConstantExpressionAst] -or
                $element.StringConstantType -ne [StringConstantType]::BareWord -or
                $element.Value.StartsWith('-') -or
                $element.Value -eq $wordToComplete) {
                break
        }
        $element.Value
    }) -join ';'

    $completions = @(switch ($command) {
        'mk' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('serve', 'serve', [CompletionResultType]::ParameterValue, 'Run the server')
            [CompletionResult]::new('verify', 'verify', [CompletionResultType]::ParameterValue, 'Verify a text')
            [CompletionResult]::new('eval', 'eval', [CompletionResultType]::ParameterValue, 'Measure how often the panel is right, by statements with known answers')
            [CompletionResult]::new('chat', 'chat', [CompletionResultType]::ParameterValue, 'Ask a model, once or in a conversation')
            [CompletionResult]::new('models', 'models', [CompletionResultType]::ParameterValue, 'List the models that can be asked, with what they cost')
            [CompletionResult]::new('apps', 'apps', [CompletionResultType]::ParameterValue, 'Manage apps, which group keys and their usage')
            [CompletionResult]::new('keys', 'keys', [CompletionResultType]::ParameterValue, 'Manage API keys')
            [CompletionResult]::new('usage', 'usage', [CompletionResultType]::ParameterValue, 'Show what was used and what it cost')
            [CompletionResult]::new('audit', 'audit', [CompletionResultType]::ParameterValue, 'Show who changed what')
            [CompletionResult]::new('config', 'config', [CompletionResultType]::ParameterValue, 'Show configuration, or begin one')
            [CompletionResult]::new('login', 'login', [CompletionResultType]::ParameterValue, 'Store an API key for a server')
            [CompletionResult]::new('logout', 'logout', [CompletionResultType]::ParameterValue, 'Forget the API keys for a server')
            [CompletionResult]::new('whoami', 'whoami', [CompletionResultType]::ParameterValue, 'Show which server and keys are used, and whether the server answers')
            [CompletionResult]::new('doctor', 'doctor', [CompletionResultType]::ParameterValue, 'Check this installation: configuration, database, clock, providers, server')
            [CompletionResult]::new('backup', 'backup', [CompletionResultType]::ParameterValue, 'Back up the databases, beside a running server')
            [CompletionResult]::new('restore', 'restore', [CompletionResultType]::ParameterValue, 'Put a backup of the databases back')
            [CompletionResult]::new('completions', 'completions', [CompletionResultType]::ParameterValue, 'Print completions for a shell')
            [CompletionResult]::new('man', 'man', [CompletionResultType]::ParameterValue, 'Write the manual pages')
            [CompletionResult]::new('version', 'version', [CompletionResultType]::ParameterValue, 'Print the version')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'mk;serve' {
            [CompletionResult]::new('--listen', '--listen', [CompletionResultType]::ParameterName, 'Address and port to listen on [default: 127.0.0.1:8080]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file [default: server.toml in the configuration directory]')
            [CompletionResult]::new('--data-dir', '--data-dir', [CompletionResultType]::ParameterName, 'Directory of an SQLite database')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--sandbox', '--sandbox', [CompletionResultType]::ParameterName, 'Simulated models in the place of all providers')
            [CompletionResult]::new('--check', '--check', [CompletionResultType]::ParameterName, 'Check the configuration and exit')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('unit', 'unit', [CompletionResultType]::ParameterValue, 'Print a unit for systemd')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'mk;serve;unit' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--socket', '--socket', [CompletionResultType]::ParameterName, 'The unit of a listening socket, which is passed to the server')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;serve;help' {
            [CompletionResult]::new('unit', 'unit', [CompletionResultType]::ParameterValue, 'Print a unit for systemd')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'mk;serve;help;unit' {
            break
        }
        'mk;serve;help;help' {
            break
        }
        'mk;verify' {
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'Verify the text of a file; repeat it for several')
            [CompletionResult]::new('--file', '--file', [CompletionResultType]::ParameterName, 'Verify the text of a file; repeat it for several')
            [CompletionResult]::new('--lines', '--lines', [CompletionResultType]::ParameterName, 'Verify each line of a file as a statement of its own; `-` for standard input')
            [CompletionResult]::new('--jobs', '--jobs', [CompletionResultType]::ParameterName, 'How many lines or files are verified at a time [default: 4]')
            [CompletionResult]::new('--max-wait', '--max-wait', [CompletionResultType]::ParameterName, 'How long to wait out the server''s rate limit, per statement [default: 5m with several statements, else 0]')
            [CompletionResult]::new('--domain', '--domain', [CompletionResultType]::ParameterName, 'Kind of statement: general, or legal (jurisdiction and date matter, citations are checked) [default: general]')
            [CompletionResult]::new('--min-required', '--min-required', [CompletionResultType]::ParameterName, 'How many models must agree: 2 or 3 [default: 2]')
            [CompletionResult]::new('--total-models', '--total-models', [CompletionResultType]::ParameterName, 'How many models are asked [default: 3]')
            [CompletionResult]::new('--as-of', '--as-of', [CompletionResultType]::ParameterName, 'Judge the facts as of this date [default: today]')
            [CompletionResult]::new('--context', '--context', [CompletionResultType]::ParameterName, 'Answer from this text instead of from the models'' knowledge')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'How long one verification may take, such as 90s or 3m [default: 10m]')
            [CompletionResult]::new('--view', '--view', [CompletionResultType]::ParameterName, 'How results are shown: list or table (a list where the terminal is too narrow for one) [default: list on a terminal, tab-separated lines elsewhere]')
            [CompletionResult]::new('--fail-on', '--fail-on', [CompletionResultType]::ParameterName, 'What makes the exit code other than 0: false (10), no-consensus (11), unchecked or skipped parts (13); or never [default: false,no-consensus,unchecked]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--text', '--text', [CompletionResultType]::ParameterName, 'Take every argument as a text, also one that names a file')
            [CompletionResult]::new('--sandbox', '--sandbox', [CompletionResultType]::ParameterName, 'Simulated models in this process: no server, key or network. They know few facts')
            [CompletionResult]::new('--local', '--local', [CompletionResultType]::ParameterName, 'The configured providers, called from this process: no server needed')
            [CompletionResult]::new('--explain', '--explain', [CompletionResultType]::ParameterName, 'Ask the models for their reasons, which the list and JSON show')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'One JSON document, at the end')
            [CompletionResult]::new('--jsonl', '--jsonl', [CompletionResultType]::ParameterName, 'A line of JSON per claim as it arrives, then a summary')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;eval' {
            [CompletionResult]::new('--limit', '--limit', [CompletionResultType]::ParameterName, 'Take only the first N statements')
            [CompletionResult]::new('--jobs', '--jobs', [CompletionResultType]::ParameterName, 'How many statements are verified at a time [default: 4]')
            [CompletionResult]::new('--max-wait', '--max-wait', [CompletionResultType]::ParameterName, 'How long to wait out the server''s rate limit, per statement [default: 5m]')
            [CompletionResult]::new('--min-accuracy', '--min-accuracy', [CompletionResultType]::ParameterName, 'Fail if fewer than this many percent are right')
            [CompletionResult]::new('--domain', '--domain', [CompletionResultType]::ParameterName, 'Kind of statement: general, or legal (jurisdiction and date matter, citations are checked) [default: general]')
            [CompletionResult]::new('--min-required', '--min-required', [CompletionResultType]::ParameterName, 'How many models must agree: 2 or 3 [default: 2]')
            [CompletionResult]::new('--total-models', '--total-models', [CompletionResultType]::ParameterName, 'How many models are asked [default: 3]')
            [CompletionResult]::new('--as-of', '--as-of', [CompletionResultType]::ParameterName, 'Judge the facts as of this date [default: today]')
            [CompletionResult]::new('--context', '--context', [CompletionResultType]::ParameterName, 'Answer from this text instead of from the models'' knowledge')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'How long one verification may take, such as 90s or 3m [default: 10m]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--sandbox', '--sandbox', [CompletionResultType]::ParameterName, 'Simulated models in this process: no server, key or network. They know few facts')
            [CompletionResult]::new('--local', '--local', [CompletionResultType]::ParameterName, 'The configured providers, called from this process: no server needed')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;chat' {
            [CompletionResult]::new('-m', '-m', [CompletionResultType]::ParameterName, 'The model to ask, as `mk models` lists it [default: `MK_MODEL`, then `[chat] model` of config.toml, then the cheapest one listed]')
            [CompletionResult]::new('--model', '--model', [CompletionResultType]::ParameterName, 'The model to ask, as `mk models` lists it [default: `MK_MODEL`, then `[chat] model` of config.toml, then the cheapest one listed]')
            [CompletionResult]::new('--system', '--system', [CompletionResultType]::ParameterName, 'What the model is told before anything else')
            [CompletionResult]::new('--temperature', '--temperature', [CompletionResultType]::ParameterName, 'How freely the model chooses its words, from 0 to 2 [default: the provider''s]')
            [CompletionResult]::new('--max-tokens', '--max-tokens', [CompletionResultType]::ParameterName, 'The most tokens of an answer [default: the provider''s]')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'How long an answer may take, such as 90s or 3m [default: 11m]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--no-stream', '--no-stream', [CompletionResultType]::ParameterName, 'Print the answer once it is whole')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'One JSON document, at the end')
            [CompletionResult]::new('--sandbox', '--sandbox', [CompletionResultType]::ParameterName, 'Simulated models in this process: no server, key or network. They know few facts')
            [CompletionResult]::new('--local', '--local', [CompletionResultType]::ParameterName, 'The configured providers, called from this process: no server needed')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;models' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('--sandbox', '--sandbox', [CompletionResultType]::ParameterName, 'Simulated models in this process: no server, key or network. They know few facts')
            [CompletionResult]::new('--local', '--local', [CompletionResultType]::ParameterName, 'The configured providers, called from this process: no server needed')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;apps' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('create', 'create', [CompletionResultType]::ParameterValue, 'Make an app')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List all apps')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Show one app')
            [CompletionResult]::new('update', 'update', [CompletionResultType]::ParameterValue, 'Change an app''s name or budget')
            [CompletionResult]::new('statement', 'statement', [CompletionResultType]::ParameterValue, 'Show what an app has used in a month, by service, key and model')
            [CompletionResult]::new('delete', 'delete', [CompletionResultType]::ParameterValue, 'Delete an app and revoke its keys, for ever; its usage stays')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'mk;apps;create' {
            [CompletionResult]::new('--budget-usd', '--budget-usd', [CompletionResultType]::ParameterName, 'What all its keys together may spend in a calendar month (UTC), in US dollars [default: any amount]')
            [CompletionResult]::new('--data-dir', '--data-dir', [CompletionResultType]::ParameterName, 'Directory of an SQLite database [default: the server''s database]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The server''s configuration file, which names the database')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;apps;list' {
            [CompletionResult]::new('--data-dir', '--data-dir', [CompletionResultType]::ParameterName, 'Directory of an SQLite database [default: the server''s database]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The server''s configuration file, which names the database')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;apps;show' {
            [CompletionResult]::new('--data-dir', '--data-dir', [CompletionResultType]::ParameterName, 'Directory of an SQLite database [default: the server''s database]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The server''s configuration file, which names the database')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;apps;update' {
            [CompletionResult]::new('--name', '--name', [CompletionResultType]::ParameterName, 'A new name, which no other app has')
            [CompletionResult]::new('--budget-usd', '--budget-usd', [CompletionResultType]::ParameterName, 'What all its keys together may spend in a calendar month (UTC), in US dollars')
            [CompletionResult]::new('--data-dir', '--data-dir', [CompletionResultType]::ParameterName, 'Directory of an SQLite database [default: the server''s database]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The server''s configuration file, which names the database')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--no-budget', '--no-budget', [CompletionResultType]::ParameterName, 'Let its keys spend any amount')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;apps;statement' {
            [CompletionResult]::new('--month', '--month', [CompletionResultType]::ParameterName, 'Calendar month (UTC), such as 2026-10 [default: this month]')
            [CompletionResult]::new('--data-dir', '--data-dir', [CompletionResultType]::ParameterName, 'Directory of an SQLite database [default: the server''s database]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The server''s configuration file, which names the database')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--csv', '--csv', [CompletionResultType]::ParameterName, 'Print CSV')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;apps;delete' {
            [CompletionResult]::new('--data-dir', '--data-dir', [CompletionResultType]::ParameterName, 'Directory of an SQLite database [default: the server''s database]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The server''s configuration file, which names the database')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('-y', '-y', [CompletionResultType]::ParameterName, 'Do not ask')
            [CompletionResult]::new('--yes', '--yes', [CompletionResultType]::ParameterName, 'Do not ask')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;apps;help' {
            [CompletionResult]::new('create', 'create', [CompletionResultType]::ParameterValue, 'Make an app')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List all apps')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Show one app')
            [CompletionResult]::new('update', 'update', [CompletionResultType]::ParameterValue, 'Change an app''s name or budget')
            [CompletionResult]::new('statement', 'statement', [CompletionResultType]::ParameterValue, 'Show what an app has used in a month, by service, key and model')
            [CompletionResult]::new('delete', 'delete', [CompletionResultType]::ParameterValue, 'Delete an app and revoke its keys, for ever; its usage stays')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'mk;apps;help;create' {
            break
        }
        'mk;apps;help;list' {
            break
        }
        'mk;apps;help;show' {
            break
        }
        'mk;apps;help;update' {
            break
        }
        'mk;apps;help;statement' {
            break
        }
        'mk;apps;help;delete' {
            break
        }
        'mk;apps;help;help' {
            break
        }
        'mk;keys' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('create', 'create', [CompletionResultType]::ParameterValue, 'Make a key; it is printed once, alone on standard output')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List keys')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Show one key''s record')
            [CompletionResult]::new('update', 'update', [CompletionResultType]::ParameterValue, 'Change a key; what is not named stays as it is')
            [CompletionResult]::new('revoke', 'revoke', [CompletionResultType]::ParameterValue, 'Revoke keys, at once and for ever')
            [CompletionResult]::new('rotate', 'rotate', [CompletionResultType]::ParameterValue, 'Replace a key by a new one with the same rights')
            [CompletionResult]::new('check', 'check', [CompletionResultType]::ParameterValue, 'Check a key from standard input, a file or the environment')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'mk;keys;create' {
            [CompletionResult]::new('--service', '--service', [CompletionResultType]::ParameterName, 'What it is for: verify, inference or console')
            [CompletionResult]::new('--app', '--app', [CompletionResultType]::ParameterName, 'The app it belongs to, by name or id [default: `default`, else the oldest]')
            [CompletionResult]::new('--name', '--name', [CompletionResultType]::ParameterName, 'A name to remember it by')
            [CompletionResult]::new('--expires', '--expires', [CompletionResultType]::ParameterName, 'When it ends: 90d, 24h, or a date [default: never]')
            [CompletionResult]::new('--per-minute', '--per-minute', [CompletionResultType]::ParameterName, 'Requests in any 60 seconds; 0 is unlimited [default: the server''s limit]')
            [CompletionResult]::new('--per-day', '--per-day', [CompletionResultType]::ParameterName, 'Requests in a UTC day; 0 is unlimited [default: the server''s limit]')
            [CompletionResult]::new('--address', '--address', [CompletionResultType]::ParameterName, 'A network it may be used from, such as 10.0.0.0/8; repeat it for several [default: all]')
            [CompletionResult]::new('--model', '--model', [CompletionResultType]::ParameterName, 'A model it may use: openai/gpt-5.4-mini, or openai/* for a provider''s; repeat it for several [default: all]')
            [CompletionResult]::new('--budget-usd', '--budget-usd', [CompletionResultType]::ParameterName, 'What it may spend in a calendar month (UTC), in US dollars [default: any amount]')
            [CompletionResult]::new('--data-dir', '--data-dir', [CompletionResultType]::ParameterName, 'Directory of an SQLite database [default: the server''s database]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The server''s configuration file, which names the database')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;keys;list' {
            [CompletionResult]::new('--app', '--app', [CompletionResultType]::ParameterName, 'Only those of this app, by name or id')
            [CompletionResult]::new('--service', '--service', [CompletionResultType]::ParameterName, 'Only those for this service: verify, inference or console')
            [CompletionResult]::new('--data-dir', '--data-dir', [CompletionResultType]::ParameterName, 'Directory of an SQLite database [default: the server''s database]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The server''s configuration file, which names the database')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Also those that are revoked')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;keys;show' {
            [CompletionResult]::new('--data-dir', '--data-dir', [CompletionResultType]::ParameterName, 'Directory of an SQLite database [default: the server''s database]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The server''s configuration file, which names the database')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;keys;update' {
            [CompletionResult]::new('--name', '--name', [CompletionResultType]::ParameterName, 'Another name to remember it by')
            [CompletionResult]::new('--expires', '--expires', [CompletionResultType]::ParameterName, 'When it ends: 90d or 24h from now, or a date')
            [CompletionResult]::new('--per-minute', '--per-minute', [CompletionResultType]::ParameterName, 'Requests in any 60 seconds; 0 is unlimited')
            [CompletionResult]::new('--per-day', '--per-day', [CompletionResultType]::ParameterName, 'Requests in a UTC day; 0 is unlimited')
            [CompletionResult]::new('--address', '--address', [CompletionResultType]::ParameterName, 'A network it may be used from, such as 10.0.0.0/8, instead of those until now; repeat it for several')
            [CompletionResult]::new('--model', '--model', [CompletionResultType]::ParameterName, 'A model it may use: openai/gpt-5.4-mini, or openai/* for a provider''s, instead of those until now; repeat it for several')
            [CompletionResult]::new('--budget-usd', '--budget-usd', [CompletionResultType]::ParameterName, 'What it may spend in a calendar month (UTC), in US dollars')
            [CompletionResult]::new('--data-dir', '--data-dir', [CompletionResultType]::ParameterName, 'Directory of an SQLite database [default: the server''s database]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The server''s configuration file, which names the database')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--no-name', '--no-name', [CompletionResultType]::ParameterName, 'Take its name away')
            [CompletionResult]::new('--no-expiry', '--no-expiry', [CompletionResultType]::ParameterName, 'Let it not end by itself')
            [CompletionResult]::new('--default-per-minute', '--default-per-minute', [CompletionResultType]::ParameterName, 'The server''s limit instead of an own one')
            [CompletionResult]::new('--default-per-day', '--default-per-day', [CompletionResultType]::ParameterName, 'The server''s limit instead of an own one')
            [CompletionResult]::new('--all-addresses', '--all-addresses', [CompletionResultType]::ParameterName, 'Let it be used from everywhere')
            [CompletionResult]::new('--all-models', '--all-models', [CompletionResultType]::ParameterName, 'Let it use all models')
            [CompletionResult]::new('--no-budget', '--no-budget', [CompletionResultType]::ParameterName, 'Let it spend any amount')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;keys;revoke' {
            [CompletionResult]::new('--data-dir', '--data-dir', [CompletionResultType]::ParameterName, 'Directory of an SQLite database [default: the server''s database]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The server''s configuration file, which names the database')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('-y', '-y', [CompletionResultType]::ParameterName, 'Do not ask')
            [CompletionResult]::new('--yes', '--yes', [CompletionResultType]::ParameterName, 'Do not ask')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;keys;rotate' {
            [CompletionResult]::new('--grace', '--grace', [CompletionResultType]::ParameterName, 'How long the old key goes on working')
            [CompletionResult]::new('--data-dir', '--data-dir', [CompletionResultType]::ParameterName, 'Directory of an SQLite database [default: the server''s database]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The server''s configuration file, which names the database')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;keys;check' {
            [CompletionResult]::new('--data-dir', '--data-dir', [CompletionResultType]::ParameterName, 'Directory of an SQLite database [default: the server''s database]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The server''s configuration file, which names the database')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;keys;help' {
            [CompletionResult]::new('create', 'create', [CompletionResultType]::ParameterValue, 'Make a key; it is printed once, alone on standard output')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List keys')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Show one key''s record')
            [CompletionResult]::new('update', 'update', [CompletionResultType]::ParameterValue, 'Change a key; what is not named stays as it is')
            [CompletionResult]::new('revoke', 'revoke', [CompletionResultType]::ParameterValue, 'Revoke keys, at once and for ever')
            [CompletionResult]::new('rotate', 'rotate', [CompletionResultType]::ParameterValue, 'Replace a key by a new one with the same rights')
            [CompletionResult]::new('check', 'check', [CompletionResultType]::ParameterValue, 'Check a key from standard input, a file or the environment')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'mk;keys;help;create' {
            break
        }
        'mk;keys;help;list' {
            break
        }
        'mk;keys;help;show' {
            break
        }
        'mk;keys;help;update' {
            break
        }
        'mk;keys;help;revoke' {
            break
        }
        'mk;keys;help;rotate' {
            break
        }
        'mk;keys;help;check' {
            break
        }
        'mk;keys;help;help' {
            break
        }
        'mk;usage' {
            [CompletionResult]::new('--since', '--since', [CompletionResultType]::ParameterName, 'The last days, today included, such as 7d or 4w [default: 30d]')
            [CompletionResult]::new('--from', '--from', [CompletionResultType]::ParameterName, 'First day (UTC), such as 2026-11-01 [default: 30 days]')
            [CompletionResult]::new('--to', '--to', [CompletionResultType]::ParameterName, 'Last day (UTC) [default: today]')
            [CompletionResult]::new('--by', '--by', [CompletionResultType]::ParameterName, 'Sum by day, app, key, model or service, or by several of these [default: day]')
            [CompletionResult]::new('--app', '--app', [CompletionResultType]::ParameterName, 'Only of this app, by name or id')
            [CompletionResult]::new('--key', '--key', [CompletionResultType]::ParameterName, 'Only of this key, by id, name or last four characters')
            [CompletionResult]::new('--model', '--model', [CompletionResultType]::ParameterName, 'Only at this model')
            [CompletionResult]::new('--service', '--service', [CompletionResultType]::ParameterName, 'Only of this service: verify or inference')
            [CompletionResult]::new('--data-dir', '--data-dir', [CompletionResultType]::ParameterName, 'Directory of an SQLite database [default: the server''s database]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The server''s configuration file, which names the database')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--csv', '--csv', [CompletionResultType]::ParameterName, 'Print CSV')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;audit' {
            [CompletionResult]::new('--app', '--app', [CompletionResultType]::ParameterName, 'Only what was done to this app and its keys, by name or id')
            [CompletionResult]::new('--key', '--key', [CompletionResultType]::ParameterName, 'Only what was done to this key, by id, name or last four characters')
            [CompletionResult]::new('--actor', '--actor', [CompletionResultType]::ParameterName, 'Only what was done with this console key, by id, name or last four characters')
            [CompletionResult]::new('--action', '--action', [CompletionResultType]::ParameterName, 'Only what was done in this way, such as key.revoked')
            [CompletionResult]::new('--limit', '--limit', [CompletionResultType]::ParameterName, 'The most entries, from the newest on; 0 shows all [default: 50]')
            [CompletionResult]::new('--data-dir', '--data-dir', [CompletionResultType]::ParameterName, 'Directory of an SQLite database [default: the server''s database]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The server''s configuration file, which names the database')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;config' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('init', 'init', [CompletionResultType]::ParameterValue, 'Write an example of the server''s file, in which nothing is set yet')
            [CompletionResult]::new('path', 'path', [CompletionResultType]::ParameterValue, 'Say where files are looked for')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List every value')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'mk;config;init' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Where to [default: server.toml in the configuration directory]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;config;path' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The server''s configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;config;list' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The server''s configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--origin', '--origin', [CompletionResultType]::ParameterName, 'Also say where each value comes from')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;config;help' {
            [CompletionResult]::new('init', 'init', [CompletionResultType]::ParameterValue, 'Write an example of the server''s file, in which nothing is set yet')
            [CompletionResult]::new('path', 'path', [CompletionResultType]::ParameterValue, 'Say where files are looked for')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List every value')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'mk;config;help;init' {
            break
        }
        'mk;config;help;path' {
            break
        }
        'mk;config;help;list' {
            break
        }
        'mk;config;help;help' {
            break
        }
        'mk;login' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--no-check', '--no-check', [CompletionResultType]::ParameterName, 'Store the key without asking the server about it')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;logout' {
            [CompletionResult]::new('--service', '--service', [CompletionResultType]::ParameterName, 'Only the key for this service: verify, inference or console')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;whoami' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;doctor' {
            [CompletionResult]::new('--data-dir', '--data-dir', [CompletionResultType]::ParameterName, 'Directory of an SQLite database [default: the server''s database]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The server''s configuration file, which names the database')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;backup' {
            [CompletionResult]::new('--data-dir', '--data-dir', [CompletionResultType]::ParameterName, 'Directory of an SQLite database [default: the server''s database]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The server''s configuration file, which names the database')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--force', '--force', [CompletionResultType]::ParameterName, 'Replace the file if it exists')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;restore' {
            [CompletionResult]::new('--data-dir', '--data-dir', [CompletionResultType]::ParameterName, 'Directory of an SQLite database [default: the server''s database]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The server''s configuration file, which names the database')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;completions' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;man' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;version' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to colour: auto, always or never')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'How to show progress: auto, bars, lines (for logs and screen readers) or none')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Base address of the server [default: port 8080 of this machine]')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of config.toml to use')
            [CompletionResult]::new('--api-key-file', '--api-key-file', [CompletionResultType]::ParameterName, 'File that holds the API key')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'PEM file of further certificate authorities to trust')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print nothing but errors and what --json asks for')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell causes and request ids of errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'mk;help' {
            [CompletionResult]::new('serve', 'serve', [CompletionResultType]::ParameterValue, 'Run the server')
            [CompletionResult]::new('verify', 'verify', [CompletionResultType]::ParameterValue, 'Verify a text')
            [CompletionResult]::new('eval', 'eval', [CompletionResultType]::ParameterValue, 'Measure how often the panel is right, by statements with known answers')
            [CompletionResult]::new('chat', 'chat', [CompletionResultType]::ParameterValue, 'Ask a model, once or in a conversation')
            [CompletionResult]::new('models', 'models', [CompletionResultType]::ParameterValue, 'List the models that can be asked, with what they cost')
            [CompletionResult]::new('apps', 'apps', [CompletionResultType]::ParameterValue, 'Manage apps, which group keys and their usage')
            [CompletionResult]::new('keys', 'keys', [CompletionResultType]::ParameterValue, 'Manage API keys')
            [CompletionResult]::new('usage', 'usage', [CompletionResultType]::ParameterValue, 'Show what was used and what it cost')
            [CompletionResult]::new('audit', 'audit', [CompletionResultType]::ParameterValue, 'Show who changed what')
            [CompletionResult]::new('config', 'config', [CompletionResultType]::ParameterValue, 'Show configuration, or begin one')
            [CompletionResult]::new('login', 'login', [CompletionResultType]::ParameterValue, 'Store an API key for a server')
            [CompletionResult]::new('logout', 'logout', [CompletionResultType]::ParameterValue, 'Forget the API keys for a server')
            [CompletionResult]::new('whoami', 'whoami', [CompletionResultType]::ParameterValue, 'Show which server and keys are used, and whether the server answers')
            [CompletionResult]::new('doctor', 'doctor', [CompletionResultType]::ParameterValue, 'Check this installation: configuration, database, clock, providers, server')
            [CompletionResult]::new('backup', 'backup', [CompletionResultType]::ParameterValue, 'Back up the databases, beside a running server')
            [CompletionResult]::new('restore', 'restore', [CompletionResultType]::ParameterValue, 'Put a backup of the databases back')
            [CompletionResult]::new('completions', 'completions', [CompletionResultType]::ParameterValue, 'Print completions for a shell')
            [CompletionResult]::new('man', 'man', [CompletionResultType]::ParameterValue, 'Write the manual pages')
            [CompletionResult]::new('version', 'version', [CompletionResultType]::ParameterValue, 'Print the version')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'mk;help;serve' {
            [CompletionResult]::new('unit', 'unit', [CompletionResultType]::ParameterValue, 'Print a unit for systemd')
            break
        }
        'mk;help;serve;unit' {
            break
        }
        'mk;help;verify' {
            break
        }
        'mk;help;eval' {
            break
        }
        'mk;help;chat' {
            break
        }
        'mk;help;models' {
            break
        }
        'mk;help;apps' {
            [CompletionResult]::new('create', 'create', [CompletionResultType]::ParameterValue, 'Make an app')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List all apps')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Show one app')
            [CompletionResult]::new('update', 'update', [CompletionResultType]::ParameterValue, 'Change an app''s name or budget')
            [CompletionResult]::new('statement', 'statement', [CompletionResultType]::ParameterValue, 'Show what an app has used in a month, by service, key and model')
            [CompletionResult]::new('delete', 'delete', [CompletionResultType]::ParameterValue, 'Delete an app and revoke its keys, for ever; its usage stays')
            break
        }
        'mk;help;apps;create' {
            break
        }
        'mk;help;apps;list' {
            break
        }
        'mk;help;apps;show' {
            break
        }
        'mk;help;apps;update' {
            break
        }
        'mk;help;apps;statement' {
            break
        }
        'mk;help;apps;delete' {
            break
        }
        'mk;help;keys' {
            [CompletionResult]::new('create', 'create', [CompletionResultType]::ParameterValue, 'Make a key; it is printed once, alone on standard output')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List keys')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Show one key''s record')
            [CompletionResult]::new('update', 'update', [CompletionResultType]::ParameterValue, 'Change a key; what is not named stays as it is')
            [CompletionResult]::new('revoke', 'revoke', [CompletionResultType]::ParameterValue, 'Revoke keys, at once and for ever')
            [CompletionResult]::new('rotate', 'rotate', [CompletionResultType]::ParameterValue, 'Replace a key by a new one with the same rights')
            [CompletionResult]::new('check', 'check', [CompletionResultType]::ParameterValue, 'Check a key from standard input, a file or the environment')
            break
        }
        'mk;help;keys;create' {
            break
        }
        'mk;help;keys;list' {
            break
        }
        'mk;help;keys;show' {
            break
        }
        'mk;help;keys;update' {
            break
        }
        'mk;help;keys;revoke' {
            break
        }
        'mk;help;keys;rotate' {
            break
        }
        'mk;help;keys;check' {
            break
        }
        'mk;help;usage' {
            break
        }
        'mk;help;audit' {
            break
        }
        'mk;help;config' {
            [CompletionResult]::new('init', 'init', [CompletionResultType]::ParameterValue, 'Write an example of the server''s file, in which nothing is set yet')
            [CompletionResult]::new('path', 'path', [CompletionResultType]::ParameterValue, 'Say where files are looked for')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List every value')
            break
        }
        'mk;help;config;init' {
            break
        }
        'mk;help;config;path' {
            break
        }
        'mk;help;config;list' {
            break
        }
        'mk;help;login' {
            break
        }
        'mk;help;logout' {
            break
        }
        'mk;help;whoami' {
            break
        }
        'mk;help;doctor' {
            break
        }
        'mk;help;backup' {
            break
        }
        'mk;help;restore' {
            break
        }
        'mk;help;completions' {
            break
        }
        'mk;help;man' {
            break
        }
        'mk;help;version' {
            break
        }
        'mk;help;help' {
            break
        }
    })

    $completions.Where{ $_.CompletionText -like "$wordToComplete*" } |
        Sort-Object -Property ListItemText
}
