//! `mk verify` and the network: proxies, certificates, waiting for rate limits, many lines at a time, and one JSON
//! document for every failure.

use std::time::{Duration, Instant};

use mk::api::Service;
use serde_json::{Value, json};

use crate::support::mk::{Mk, VERIFY_KEY, operator};
use crate::support::panel::{agreeing_panel, config, finds_eiffel, panel_by, with_panel};
use crate::support::provider::{FakeProvider, Reply, claims};
use crate::support::scripted::{COMPLETED, Scripted, Step, answer, stream};
use crate::support::serve::{self, Serve};
use crate::support::server::Setup;

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_is_bypassed_for_this_machine() {
    let proxy = Scripted::answering(stream(COMPLETED)).await;
    let (server, _provider) = agreeing_panel().await;
    let mk = Mk::new()
        .args(["verify", "The Eiffel Tower is in Paris."])
        .env("MK_API_KEY", &server.key(Service::Verify));
    let mk = mk.env("HTTP_PROXY", &proxy.base).env("http_proxy", &proxy.base).env("ALL_PROXY", &proxy.base);
    let port = server.authority().rsplit(':').next().unwrap().to_owned();
    for here in [server.base.clone(), format!("http://localhost:{port}")] {
        let ran = mk.clone().env("MK_SERVER", &here).run_beside().await;
        assert_eq!(ran.code(), 0, "{here}: {ran:?}");
    }
    assert_eq!(proxy.requests(), Vec::<String>::new());

    let away = mk.env("MK_SERVER", "http://mk.invalid");
    let ran = away.run_beside().await;
    assert_eq!(ran.code(), 12, "{ran:?}");
    assert!(ran.stderr.contains("plain http"), "{ran:?}");
    assert!(
        proxy.requests()[0].starts_with("POST http://mk.invalid/verify/v1/stream "),
        "{:?}",
        proxy.requests()
    );
    let ran = away.env("NO_PROXY", "mk.invalid").args(["--timeout", "20s"]).run_beside().await;
    assert_eq!(ran.code(), 6, "{ran:?}");
    assert_eq!(proxy.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_verified_and_extra_authorities_accepted() {
    let provider = panel_by(|_, ask| ask.choose("Paris")).await;
    let certified = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let call = serve::call(&provider.base_url, "tls_cert = \"cert.pem\"\ntls_key = \"key.pem\"");
    let authority = call.home().join("cert.pem");
    std::fs::write(&authority, certified.cert.pem()).unwrap();
    std::fs::write(call.home().join("key.pem"), certified.signing_key.serialize_pem()).unwrap();
    let server = Serve::start(&call);
    assert!(server.base.starts_with("https://"), "{}", server.base);
    let data = serve::data_dir(call.home());
    let key = operator(&data, &["keys", "create", "--service", "verify"]).run();

    let verify = Mk::new()
        .args(["verify", "The Eiffel Tower is in Paris."])
        .env("MK_SERVER", &server.base)
        .env("MK_API_KEY", key.stdout.trim());
    let distrusted = verify.run_beside().await;
    assert_eq!(distrusted.code(), 6, "{distrusted:?}");
    assert!(
        distrusted.stderr.contains("its certificate is not signed by a trusted authority"),
        "{distrusted:?}"
    );
    assert!(distrusted.stderr.contains("with --ca-cert or MK_CACERT"), "{distrusted:?}");
    assert!(!distrusted.stderr.contains("is the server running?"), "{distrusted:?}");
    let trusted = verify.clone().env("MK_CACERT", authority.to_str().unwrap()).run_beside().await;
    assert_eq!(trusted.code(), 0, "{trusted:?}");
    let missing = verify.args(["--ca-cert", "nowhere.pem"]).run_beside().await;
    assert_eq!(missing.code(), 2, "{missing:?}");
    assert!(missing.stderr.contains("nowhere.pem"), "{missing:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_errors_are_explained_with_a_hint() {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, date_time_ymd};
    let made = |name: &str| CertificateParams::new(vec![name.to_owned()]).unwrap();
    let mut authority = made("127.0.0.1");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let mut ended = made("127.0.0.1");
    ended.not_after = date_time_ymd(2001, 1, 1);
    for (params, told, hint) in [
        (authority, "its certificate is that of an authority, not of a server", "basicConstraints=CA:FALSE"),
        (ended, "its certificate has expired, or is not valid yet", "check this machine's clock"),
        (
            made("elsewhere.example"),
            "its certificate is for another name",
            "use the name in the server's certificate",
        ),
    ] {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        let call = serve::call("http://127.0.0.1:0", "tls_cert = \"cert.pem\"\ntls_key = \"key.pem\"");
        let file = call.home().join("cert.pem");
        std::fs::write(&file, certificate).unwrap();
        std::fs::write(call.home().join("key.pem"), key.serialize_pem()).unwrap();
        let server = Serve::start(&call);
        let asked = Mk::new()
            .args(["verify", "The Eiffel Tower is in Paris.", "--ca-cert", file.to_str().unwrap()])
            .env("MK_SERVER", &server.base)
            .env("MK_API_KEY", VERIFY_KEY);
        let ran = asked.run_beside().await;
        assert_eq!(ran.code(), 6, "{ran:?}");
        assert!(ran.stderr.contains(told) && ran.stderr.contains(hint), "{ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn quiet_line_mode_reports_errors_in_one_message() {
    let failing = lines("http://127.0.0.1:0", "one\n\nthree\n", &["-q"]).run_beside().await;
    assert_eq!((failing.code(), failing.stdout.as_str()), (6, ""), "{failing:?}");
    let told: Vec<&str> = failing.stderr.lines().collect();
    let expected =
        "error: 2 statements were not verified; line 1: cannot reach http://127.0.0.1:0 (connection refused)";
    assert!(told.len() == 3 && told[0].starts_with("2 statements: 0 verified, 2 failed"), "{failing:?}");
    assert!(told[1] == expected && told[2].starts_with("hint: "), "{failing:?}");
    let json = lines("http://127.0.0.1:0", "one\n", &["-q", "--json"]).run_beside().await;
    assert!(json.json()["statements"][0]["error"].is_object(), "{json:?}");
    assert!(json.stderr.starts_with("line 1  ERROR         cannot reach "), "{json:?}");

    let (server, _provider) = with_panel(|_, ask| ask.choose("Rome")).await;
    let key = server.key(Service::Verify);
    let found = lines(&server.base, "The Eiffel Tower is in Paris.\n", &["-q"])
        .env("MK_VERIFY_KEY", &key)
        .run_beside()
        .await;
    assert_eq!((found.code(), found.stdout.as_str()), (10, ""), "{found:?}");
    assert!(found.stderr.starts_with("line 1  FALSE         The Eiffel Tower is in Paris.\n"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_scheme_is_reported_with_the_right_one() {
    let (plain, _provider) = agreeing_panel().await;
    let at = |scheme: &str, base: &str| format!("{scheme}{}", base.split_once("://").unwrap().1);
    let https = at("https://", &plain.base);
    for command in ["whoami", "doctor"] {
        let ran = Mk::new().args([command]).env("MK_SERVER", &https).run_beside().await;
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(told.contains(&format!("cannot reach {https} (it does not speak TLS)")), "{told}");
        assert!(told.contains(&format!("try {}", plain.base)), "{told}");
    }
    let tls = Scripted::answering(&b"\x15\x03\x01\x00\x02\x02\x46"[..]).await;
    let ran = Mk::new().args(["whoami", "--server", &tls.base]).run_beside().await;
    assert!(ran.stderr.contains(&format!("try {}", at("https://", &tls.base))), "{ran:?}");
    for (given, meant) in
        [("localhost:8080", "http://localhost:8080"), ("mk.example.org", "https://mk.example.org")]
    {
        let ran = Mk::new().args(["whoami", "--server", given]).run();
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(ran.stderr.contains(&format!("did you mean {meant}?")), "{ran:?}");
    }
}

fn lines(server: &str, text: &str, arguments: &[&str]) -> Mk {
    let mk = Mk::new().args(["verify", "--lines", "-"]).args(arguments.iter().copied());
    mk.stdin(text).env("MK_SERVER", server).env("MK_API_KEY", VERIFY_KEY)
}

#[tokio::test(flavor = "multi_thread")]
async fn all_lines_wait_together_for_the_minute_limit() {
    let busy = json!({"error": "Rate Limit Exceeded", "message": "Too many requests per minute",
        "code": "rate_limited_minute", "request_id": "r"});
    let server = Scripted::start(move |number| {
        let limited = answer("429 Too Many Requests", "retry-after: 1\r\n", &busy.to_string());
        vec![Step::Send(if number == 1 { limited } else { stream(COMPLETED) })]
    })
    .await;
    let started = Instant::now();
    let ran = lines(&server.base, "one\ntwo\nthree\n", &["--jobs", "1"]).run_beside().await;
    assert_eq!(ran.code(), 12, "{ran:?}");
    assert!(started.elapsed() >= Duration::from_secs(1));
    assert_eq!(ran.stderr.matches("waiting 1 s: too many requests per minute").count(), 1, "{ran:?}");
    let facts: Vec<Value> = server
        .requests()
        .iter()
        .map(|request| serde_json::from_str(request.split("\r\n\r\n").nth(1).unwrap()).unwrap())
        .map(|body: Value| body["fact"].clone())
        .collect();
    assert_eq!(facts, ["one", "two", "two", "three"], "only the rejected request is sent again");
    assert_eq!(ran.stdout, "1\t-\tNOTHING\t-\t\n2\t-\tNOTHING\t-\t\n3\t-\tNOTHING\t-\t\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exhausted_daily_limit_is_not_waited_for() {
    let busy = json!({"error": "Rate Limit Exceeded", "message": "Too many requests per day",
        "code": "rate_limited_day", "request_id": "r"});
    let headers = "retry-after: 2\r\nx-should-retry: false\r\n";
    let server = Scripted::answering(answer("429 Too Many Requests", headers, &busy.to_string())).await;
    let ran = lines(&server.base, "one\ntwo\n", &[]).run_beside().await;
    assert_eq!(ran.code(), 7, "{ran:?}");
    assert_eq!(server.requests().len(), 2);
    assert!(
        ran.stdout.starts_with("1\t-\tERROR\tbusy\t") && ran.stdout.contains("\n2\t-\tERROR\tbusy\t"),
        "{ran:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn results_keep_the_order_of_lines_and_failures_do_not_stop_the_rest() {
    let provider = FakeProvider::start(|ask| match ask.task.as_str() {
        "claims" => match ask.block("SECTION") {
            slow if slow.contains("slow") => finds_eiffel().after(Duration::from_millis(400)),
            broken if broken.contains("broken") => Reply::status(500, &json!({})),
            _ => finds_eiffel().after(Duration::from_millis(40)),
        },
        _ => ask.choose("Paris"),
    })
    .await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    let of = |line: &str| format!("The Eiffel Tower is in Paris: {line}").into_bytes();
    let text = [
        of("slow\n"),
        of("broken\n"),
        b"\xff\n\n  \n".to_vec(),
        of("it stands\r\n"),
        of("it is there\n"),
        of("indeed"),
    ]
    .concat();
    for jobs in ["1", "3"] {
        let call = lines(&server.base, "", &["--jobs", jobs]).stdin(text.clone());
        let ran = call.env("MK_API_KEY", &server.key(Service::Verify)).run_beside().await;
        assert_eq!(ran.code(), 2, "the exit code of the worst result: {ran:?}");
        let shown: Vec<Vec<&str>> =
            ran.stdout.lines().map(|line| line.split('\t').take(3).collect()).collect();
        let expected = [
            ["1", "1", "TRUE"],
            ["2", "-", "ERROR"],
            ["3", "-", "ERROR"],
            ["6", "1", "TRUE"],
            ["7", "1", "TRUE"],
            ["8", "1", "TRUE"],
        ];
        assert_eq!(shown, expected, "{ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_limits_the_lines_verified_at_once() {
    for (jobs, most) in [("1", 1), ("3", 3)] {
        let provider = FakeProvider::start(|ask| match ask.task.as_str() {
            "claims" => claims(&[]).after(Duration::from_millis(100)),
            _ => ask.choose("Paris"),
        })
        .await;
        let server = Setup::new(config(&provider.base_url)).start().await;
        let call = lines(&server.base, "a\nb\nc\nd\ne\nf\n", &["--jobs", jobs]);
        let ran = call.env("MK_API_KEY", &server.key(Service::Verify)).run_beside().await;
        assert_eq!(ran.code(), 12, "{ran:?}");
        assert_eq!(provider.most_in_flight(), most);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_failure_is_one_json_document() {
    let (server, _provider) = with_panel(|_, _| Reply::status(500, &json!({}))).await;
    let key = server.key(Service::Verify);
    let user = || Mk::new().env("MK_SERVER", &server.base).env("MK_API_KEY", &key);
    for (code, mk) in [
        (5, user().args(["verify", "The Eiffel Tower is in Paris.", "--json"])),
        (4, user().args(["verify", "The Eiffel Tower is in Paris.", "--json"]).env("MK_API_KEY", VERIFY_KEY)),
        (
            6,
            user()
                .args(["verify", "The Eiffel Tower is in Paris.", "--json"])
                .env("MK_SERVER", "http://127.0.0.1:0"),
        ),
        (2, user().args(["verify", "The Eiffel Tower is in Paris.", "--json", "--wrong"])),
        (2, user().args(["verify", "--json"])),
        (2, user().args(["verify", "--json", "-f", "nowhere"])),
        (2, user().args(["verify", "The Eiffel Tower is in Paris.", "--json"]).env("MK_SERVER", "nonsense")),
        (2, user().args(["verify", "The Eiffel Tower is in Paris.", "--json"]).env("MK_COLOR", "purple")),
        (2, user().args(["keys", "list", "--json"]).env("MK_DATA_DIR", "/dev/null")),
        (9, user().args(["keys", "show", "nobody", "--json"])),
        (9, user().args(["apps", "show", "nobody", "--json"])),
        (9, user().args(["apps", "delete", "default", "--json"])),
        (9, user().args(["apps", "delete", "default", "--yes", "--json"])),
    ] {
        let ran = mk.run_beside().await;
        assert_eq!(ran.code(), code, "{ran:?}");
        let document = ran.json();
        assert_eq!((&document["schema"], &document["exit"]), (&json!("mk.error/1"), &json!(code)), "{ran:?}");
        let mut told = ran.stderr.lines().skip_while(|line| line.starts_with("warning: "));
        assert!(told.next().is_some_and(|line| line.starts_with("error: ")), "{ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn verbose_adds_the_request_id() {
    let (server, _provider) = with_panel(|_, _| Reply::status(500, &json!({}))).await;
    let user = Mk::new().args(["verify", "The Eiffel Tower is in Paris."]).env("MK_SERVER", &server.base);
    let ran = user.clone().env("MK_API_KEY", &server.key(Service::Verify)).args(["-v"]).run_beside().await;
    assert!(ran.stderr.contains("\nrequest: ver_") && ran.stderr.contains("\ncode: provider_"), "{ran:?}");
    let refused = user.env("MK_API_KEY", VERIFY_KEY).args(["-v"]).run_beside().await;
    assert!(refused.stderr.contains("\nrequest: "), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_keeps_running_after_its_log_is_closed() {
    let call = serve::call("http://127.0.0.1:0/v1", "");
    let mut child = call.command().stderr(std::process::Stdio::piped()).spawn().unwrap();
    let base = serve::first_address(child.stderr.take().unwrap());
    for _ in 0..5 {
        let health = crate::support::server::client().get(format!("{base}/verify/v1/health")).send().await;
        assert_eq!(health.unwrap().status(), 200);
    }
    serve::signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoami_has_a_timeout() {
    let server = Scripted::start(|_| {
        let mut steps = vec![Step::Send(b"HTTP/1.1 500 Oh\r\ncontent-length: 60000\r\n\r\n".to_vec())];
        steps.extend(
            (0..600).flat_map(|_| [Step::Send(b" ".to_vec()), Step::Wait(Duration::from_millis(100))]),
        );
        steps
    })
    .await;
    let mk = Mk::new().args(["whoami"]).env("MK_SERVER", &server.base).env("MK_TIMEOUT", "500ms");
    let started = Instant::now();
    let ran = mk.run_beside().await;
    assert_eq!(ran.code(), 6, "{ran:?}");
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[test]
fn a_server_that_cannot_be_reached_is_given_up_after_five_statements_in_a_row() {
    // Nothing listens on the first port, and names below `invalid` have no address (RFC 6761).
    let nowhere = ["http://127.0.0.1:1", "http://mk.invalid"];
    for (command, server) in ["verify", "extract"].into_iter().zip(nowhere) {
        let mk = Mk::new()
            .args([command, "--lines", "facts.txt", "--jobs", "1"])
            .env("MK_SERVER", server)
            .env("MK_API_KEY", VERIFY_KEY);
        std::fs::write(mk.home().join("facts.txt"), "a statement\n".repeat(8)).unwrap();
        let ran = mk.run();
        assert_eq!(ran.code(), 6, "{ran:?}");
        let is_asked =
            |line: &str| !line.contains("not asked, because those before did not reach the server: ");
        let asked: Vec<bool> = ran.stdout.lines().map(is_asked).collect();
        assert_eq!(asked, [true, true, true, true, true, false, false, false], "{ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_server_is_not_reported_as_healthy() {
    for (body, words) in [("<html>It works!", "its answer is not JSON"), ("{}", "is not `ok`")] {
        let length = body.len();
        let answer =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
        let server = Scripted::answering(answer).await;
        let told = format!("{} does not seem to be an mk server: ", server.base);
        let call = |command| Mk::new().args([command, "--json", "--server", &server.base]);

        let whoami = call("whoami").run_beside().await;
        let document = whoami.json();
        assert_eq!((whoami.code(), &document["reachable"]), (5, &false.into()), "{whoami:?}");
        let message = document["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(&told) && message.contains(words), "{message}");

        let doctor = call("doctor").run_beside().await;
        let document = doctor.json();
        let check = document["checks"].as_array().unwrap().iter().find(|check| check["check"] == "server");
        let check = check.unwrap();
        assert_eq!((doctor.code(), &check["status"]), (1, &"failed".into()), "{doctor:?}");
        assert!(check["message"].as_str().unwrap().contains(words), "{check}");
    }
}
