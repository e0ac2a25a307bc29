//! `mk serve unit`: a systemd unit that gives the server what it needs and nothing else.

use std::path::Path;

use clap::Args;

use crate::cli::args::globals::Session;
use crate::cli::process::exit::{Failure, Kind, Outcome};

/// Examples of `mk serve unit`, first in its help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  mk serve unit | sudo tee /etc/systemd/system/mk.service
  sudo systemctl daemon-reload && sudo systemctl enable --now mk
  mk serve unit --socket | sudo tee /etc/systemd/system/mk.socket";

/// The text below the options in `mk serve unit --help`.
pub(crate) const NOTES: &str = "\
The service runs as its own user, with data in /var/lib/mk and optional settings
in /etc/mk/server.toml.
Pass provider keys as credentials: LoadCredential=OPENAI_API_KEY:FILE.
Administer it as root: sudo MK_DATA_DIR=/var/lib/mk mk keys list. With
PostgreSQL, set MK_DATABASE_URL or MK_CONFIG_DIR=/etc/mk instead.
After changing settings: sudo systemctl reload mk.
If mk.socket is enabled too, connections wait during a restart instead of being
refused.";

/// The arguments of `mk serve unit`.
#[derive(Args, Debug)]
pub(crate) struct UnitArgs {
    /// Print the unit of a listening socket to go with the service
    #[arg(long)]
    socket: bool,
}

/// Placeholder for the program's path.
const PROGRAM: &str = "@PROGRAM@";

/// Draining takes at most 24 s, and the last writes 20 s if another process locks the ledger. A reason not to start may
/// be temporary (an address that does not exist yet, a locked database), and has the same exit code as a wrong
/// configuration: so the start is retried for ever, but not often.
const SERVICE: &str = "\
# mk: fact verification and chat inference. Written by `mk serve unit`; change what you need.
[Unit]
Description=mk, fact verification and chat inference
Wants=network-online.target
After=network-online.target postgresql.service
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart=@PROGRAM@ serve
# `systemctl reload mk` applies changed settings; the log says which.
ExecReload=/bin/kill -HUP $MAINPID
Environment=MK_CONFIG_DIR=%E/mk MK_DATA_DIR=%S/mk
Restart=on-failure
RestartSec=5
TimeoutStopSec=60
LimitNOFILE=32768

# Provider keys: if a variable is not set, a credential of the same name is used. Credentials are copied when the
# service starts: to change one, restart.
#LoadCredential=OPENAI_API_KEY:/etc/mk/openai.key
#LoadCredential=ANTHROPIC_API_KEY:/etc/mk/anthropic.key
#LoadCredentialEncrypted=GEMINI_API_KEY:/etc/mk/gemini.cred
# A shared database or limits store whose address contains a password:
#LoadCredential=MK_DATABASE_URL:/etc/mk/database.url
#LoadCredential=MK_LIMITS_URL:/etc/mk/limits.url
# TLS: in server.toml, tls_key = \"/run/credentials/mk.service/tls.key\", and so tls_cert.
#LoadCredential=tls.key:/etc/mk/tls.key
#LoadCredential=tls.crt:/etc/mk/tls.crt
# A port below 1024 needs mk.socket, or:
#AmbientCapabilities=CAP_NET_BIND_SERVICE
#CapabilityBoundingSet=CAP_NET_BIND_SERVICE
#PrivateUsers=no

DynamicUser=yes
StateDirectory=mk
StateDirectoryMode=0700
ConfigurationDirectory=mk
UMask=0077
CapabilityBoundingSet=
LimitCORE=0
LockPersonality=yes
MemoryDenyWriteExecute=yes
NoNewPrivileges=yes
PrivateDevices=yes
PrivateTmp=yes
PrivateUsers=yes
ProcSubset=pid
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProtectSystem=strict
RemoveIPC=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources

[Install]
WantedBy=multi-user.target
";

const SOCKET: &str = "\
# The listening socket of mk.service; replaces `listen`. Written by `mk serve unit --socket`.
[Unit]
Description=The listening socket of mk

[Socket]
ListenStream=127.0.0.1:8080
NoDelay=true
Backlog=4096

[Install]
WantedBy=sockets.target
";

/// Directories hidden from the server by the unit's `ProtectHome` and `PrivateTmp`.
const HIDDEN_DIRS: [&str; 5] = ["/home", "/root", "/run/user", "/tmp", "/var/tmp"];

/// Prints a unit.
pub(crate) fn run(args: &UnitArgs, session: &Session) -> Outcome {
    if args.socket {
        session.printer.result(SOCKET.trim_end())?;
        return Ok(0);
    }
    let program = std::env::current_exe().map_err(|cause| {
        Failure::new(Kind::Other, format!("cannot find the path of this program: {cause}")).caused_by(cause)
    })?;
    session.printer.result(service(&program).trim_end())?;
    if HIDDEN_DIRS.iter().any(|place| program.starts_with(place)) {
        session.printer.warning(&format!(
            "the unit cannot run {}, because it has no access to home directories and temporary files; copy mk \
             to /usr/local/bin and run /usr/local/bin/mk serve unit",
            program.display()
        ));
    }
    Ok(0)
}

fn service(program: &Path) -> String {
    SERVICE.replace(PROGRAM, &quoted(&program.display().to_string()))
}

/// A path in the syntax of `ExecStart=`.
fn quoted(path: &str) -> String {
    let path = path.replace('%', "%%").replace('$', "$$");
    if path.contains([' ', '\"', '\\', '\'', ';']) {
        return format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_survives_the_unit_s_own_syntax() {
        assert_eq!(quoted("/usr/local/bin/mk"), "/usr/local/bin/mk");
        assert_eq!(quoted("/a b/100%/$x/mk"), "\"/a b/100%%/$$x/mk\"");
    }
}
