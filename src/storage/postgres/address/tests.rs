//! Which addresses are valid, what they mean, and that none shows its password.

use tokio_postgres::config::Host;

use super::*;

fn parsed(text: &str) -> PostgresAddress {
    PostgresAddress::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"))
}

#[test]
fn an_address_is_shown_without_user_and_password() {
    for (text, shown) in [
        ("postgres://db.example/mk", "postgres://db.example:5432/mk"),
        ("postgresql://robin:hunter2@db.example:7000/mk", "postgres://db.example:7000/mk"),
        ("postgres://robin:hunter2@db.example", "postgres://db.example:5432"),
        ("postgres://robin:hun%2Fter2%40%3F@[::1]/mk?sslmode=require", "postgres://[::1]:5432/mk"),
        ("postgres://robin:hunter2:@a,b:5433/mk", "postgres://a:5432,b:5433/mk"),
        ("postgres://robin:hunter2@%2Frun%2Fpostgresql/mk", "postgres:///mk?host=/run/postgresql"),
        ("postgres://robin@/mk?host=/run/pg&port=5433", "postgres:///mk?host=/run/pg&port=5433"),
        ("postgres://robin:hunter2@h/mk?options=-c%20role=hunter2", "postgres://h:5432/mk"),
    ] {
        let address = parsed(text);
        let url = DatabaseUrl::parse(text).unwrap();
        assert_eq!((address.to_string(), url.to_string()), (shown.to_owned(), shown.to_owned()));
        for told in [format!("{address:?}"), format!("{url:?}")] {
            assert!(!told.contains("hunter") && !told.contains("robin") && told.contains(shown), "{told}");
        }
        assert_eq!(parsed(shown).to_string(), shown, "what is shown can be read");
    }
    assert_eq!(DatabaseUrl::parse("sqlite"), Ok(DatabaseUrl::Sqlite));
    assert_eq!(DatabaseUrl::default().to_string(), "sqlite");
}

#[test]
fn invalid_addresses_are_refused() {
    for text in [
        "",
        "db.example",
        "mysql://db.example",
        "POSTGRES://db.example",
        "postgres:db.example",
        "host=db.example user=mk",
        // No host.
        "postgres://",
        "postgres:///mk",
        "postgres://mk@/mk",
        "postgres://a,,b/mk",
        "postgres://:5432/mk",
        // An empty user.
        "postgres://@db.example/mk",
        "postgres://:hunter2@db.example/mk",
        // Passwords that are not escaped.
        "postgres://mk:hunter@2@db.example/mk",
        "postgres://mk:hunter/2@db.example/mk",
        "postgres://mk:1234/5@db.example/mk",
        "postgres://mk:hunter?2@db.example/mk",
        "postgres://mk:1234?options=5@db.example/mk",
        "postgres://mk:hunter#2@db.example/mk",
        "postgres://mk:hunter 2@db.example/mk",
        "postgres://mk:100%@db.example/mk",
        "postgres://mk:100%zz@db.example/mk",
        "postgres://mk:%ff@db.example/mk",
        "postgres://mk:%00@db.example/mk",
        // Ports.
        "postgres://db.example:0/mk",
        "postgres://db.example:/mk",
        "postgres://db.example:+5432/mk",
        "postgres://db.example:99999/mk",
        "postgres://db.example:5432,5433/mk?port=1",
        // Hosts.
        "postgres://[::1/mk",
        "postgres://[::1]5432/mk",
        "postgres://[fe80::1%25eth0]/mk",
        "postgres://::1/mk",
        "postgres://db%20example/mk",
        "postgres://%2Frun%2Fpostgresql,db.example/mk",
        "postgres://%2Fa,%2Fb/mk",
        "postgres://db.example/mk?host=/run/postgresql",
        "postgres:///mk?host=db.example",
        "postgres:///mk?host=/a,/b",
        // The rest.
        "postgres://db.example/mk/more",
        "postgres://db.example/mk#fragment",
        "postgres://db.example/mk?",
        "postgres://db.example/mk?sslmode",
        "postgres://db.example/mk?sslmode=",
        "postgres://db.example/mk?sslmode=allow",
        "postgres://db.example/mk?sslmode=disable&sslrootcert=/ca.pem",
        "postgres://db.example/mk?sslrootcert=ca.pem",
        "postgres://db.example/mk?sslmode=require&sslmode=disable",
        "postgres:///mk?host=/run/postgresql&sslmode=require",
        "postgres://db.example/mk?connect_timeout=0",
        "postgres://db.example/mk?connect_timeout=61",
        "postgres://db.example/mk?target_session_attrs=read-only",
        "postgres://db.example/mk?target_session_attrs=any",
        "postgres://db.example/mk?password=hunter2",
        "postgres://db.example/mk?hostaddr=127.0.0.1",
    ] {
        let why = DatabaseUrl::parse(text).expect_err(text);
        assert!(!why.contains("hunter"), "{text}: {why}");
    }
}

#[test]
fn errors_name_what_is_wrong() {
    for (text, why) in [
        ("mysql://db.example/mk", NOT_AN_ADDRESS),
        ("postgres://robin:hun/ter2@db.example/mk", UNESCAPED),
        ("postgres://robin:hun%ter2@db.example/mk", UNESCAPED),
        ("postgres:///mk", NO_HOST),
        ("postgres://db.example:99999/mk", NO_HOST),
        ("postgres://db.example/mk?sslmode=verify-ful", BAD_SSLMODE),
        ("postgres://db.example/mk?ssl=true", BAD_PARAMETER),
        ("postgres://db.example/mk?connect_timeout=abc", BAD_PARAMETER),
    ] {
        assert_eq!(DatabaseUrl::parse(text), Err(why), "{text}");
    }
}

#[test]
fn an_address_sets_host_user_and_options() {
    let address = parsed("postgres://r%40bin:hunter%2f2:%25@one,two:5433/m%6b?connect_timeout=5");
    let config = address.config();
    assert_eq!((config.get_user(), config.get_password()), (Some("r@bin"), Some(&b"hunter/2:%"[..])));
    assert_eq!(config.get_hosts(), [Host::Tcp("one".to_owned()), Host::Tcp("two".to_owned())]);
    assert_eq!((config.get_ports(), config.get_dbname()), (&[5432, 5433][..], Some("mk")));
    assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(5)));
    assert_eq!(config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);

    let address = parsed("postgres://robin:@%2Frun%2Fpostgresql:5433");
    let config = address.config();
    assert_eq!((config.get_user(), config.get_password(), config.get_dbname()), (Some("robin"), None, None));
    assert_eq!(config.get_hosts(), [Host::Unix("/run/postgresql".into())]);
    assert_eq!((config.get_ports(), config.get_ssl_mode()), (&[5433][..], SslMode::Disable));
    assert_eq!(config.get_application_name(), Some("mk"));
    assert_eq!(config.get_connect_timeout(), Some(&CONNECT_TIMEOUT));
    assert_eq!(config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    assert!(config.get_keepalives());

    let named =
        parsed("postgres://h/mk?application_name=one&options=-c%20search_path=own&channel_binding=require");
    let config = named.config();
    assert_eq!(
        (config.get_application_name(), config.get_options()),
        (Some("one"), Some("-c search_path=own"))
    );
    assert_eq!(config.get_channel_binding(), ChannelBinding::Require);
}

#[test]
fn an_sslmode_means_what_it_does_elsewhere_or_stricter() {
    let file = || Trust::File("/ca.pem".into());
    for (query, mode, trust) in [
        ("", SslMode::Prefer, Trust::Anybody),
        ("?sslmode=disable", SslMode::Disable, Trust::Anybody),
        ("?sslmode=prefer", SslMode::Prefer, Trust::Anybody),
        ("?sslmode=require", SslMode::Require, Trust::Anybody),
        ("?sslmode=verify-ca", SslMode::Require, Trust::System),
        ("?sslmode=verify-full", SslMode::Require, Trust::System),
        ("?sslmode=verify-full&sslrootcert=system", SslMode::Require, Trust::System),
        ("?sslmode=verify-full&sslrootcert=/ca.pem", SslMode::Require, file()),
        ("?sslmode=require&sslrootcert=%2Fca.pem", SslMode::Require, file()),
        ("?sslrootcert=/ca.pem", SslMode::Require, file()),
    ] {
        let address = parsed(&format!("postgres://h/mk{query}"));
        assert_eq!((address.config().get_ssl_mode(), &address.0.trust), (mode, &trust), "{query}");
    }
}

#[test]
fn addresses_with_other_credentials_or_options_differ() {
    let address = parsed("postgres://robin:one@h/mk");
    assert_eq!(address, parsed("postgresql://robin:one@h:5432/mk"));
    for other in [
        "postgres://robin:two@h/mk",
        "postgres://other:one@h/mk",
        "postgres://robin:one@h/mk2",
        "postgres://robin:one@h/mk?sslmode=require",
        "postgres://robin:one@h/mk?options=-c%20role=x",
    ] {
        assert_ne!(address, parsed(other), "{other}");
    }
}
