//! Which model `mk chat` uses: the one named, the one configured, or the cheapest.

use crate::support::chat::{gateway, gateway_with};
use crate::support::mk::Mk;
use crate::support::provider::stream;

#[tokio::test(flavor = "multi_thread")]
async fn a_configured_model_is_used_without_a_notice() {
    let gateway = gateway(|_| stream(&["The Eiffel Tower is in Paris."])).await;
    let by_variable =
        gateway.mk_chat(&["The Eiffel Tower is in Paris."]).env("MK_MODEL", "fake/set").run_beside().await;
    assert_eq!((by_variable.code(), by_variable.stderr.contains("asking")), (0, false), "{by_variable:?}");
    let by_flag = gateway.mk_chat(&["-m", "fake/named", "x"]).env("MK_MODEL", "fake/set").run_beside().await;
    assert_eq!(by_flag.code(), 0, "{by_flag:?}");
    let in_file = gateway.mk_chat(&["The Eiffel Tower is in Paris."]);
    std::fs::write(in_file.home().join("config.toml"), "[chat]\nmodel = \"fake/kept\"\n").unwrap();
    let directory = in_file.home().to_str().unwrap().to_owned();
    let by_file = in_file.env("MK_CONFIG_DIR", &directory).run_beside().await;
    assert_eq!(by_file.code(), 0, "{by_file:?}");
    let asked: Vec<String> = gateway.provider.requests().into_iter().map(|ask| ask.model).collect();
    assert_eq!(asked, ["set", "named", "kept"]);
    // With --sandbox, a configured model is not used.
    let simulated = Mk::new().args(["chat", "--sandbox", "x"]).env("MK_MODEL", "fake/set").run();
    assert!(simulated.code() == 0 && simulated.stderr.contains("sandbox/alpha"), "{simulated:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_is_the_cheapest_real_model() {
    let prices = "[providers.fake.models.z]\ninput_usd_per_mtok = 0.1\noutput_usd_per_mtok = 0.2\n";
    let gateway =
        gateway_with("", prices, |setup| setup, |_| stream(&["The Eiffel Tower is in Paris."])).await;
    let ran = gateway.mk_chat(&["The Eiffel Tower is in Paris."]).run_beside().await;
    assert!(ran.code() == 0 && ran.stderr.starts_with("asking fake/z; "), "{ran:?}");
    assert_eq!(gateway.provider.requests()[0].model, "z");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_model_is_reported_with_where_it_was_set() {
    let gateway = gateway(|_| stream(&["The Eiffel Tower is in Paris."])).await;
    let by_flag = gateway.mk_chat(&["-m", "nobody/m", "x"]).env("MK_MODEL", "fake/set").run_beside().await;
    assert!(by_flag.stderr.starts_with("error: -m: there is no model `nobody/m`"), "{by_flag:?}");
    let by_variable = gateway.mk_chat(&["x"]).env("MK_MODEL", "nobody/m").run_beside().await;
    assert!(
        by_variable.stderr.starts_with("error: MK_MODEL: there is no model `nobody/m`"),
        "{by_variable:?}"
    );
    let in_file = gateway.mk_chat(&["x"]);
    let path = in_file.home().join("config.toml");
    std::fs::write(&path, "[chat]\nmodel = \"nobody/m\"\n").unwrap();
    let directory = in_file.home().to_str().unwrap().to_owned();
    let by_file = in_file.env("MK_CONFIG_DIR", &directory).run_beside().await;
    let expected = format!("error: chat.model ({}:2): there is no model `nobody/m`", path.display());
    // Errors are wrapped on a terminal only, so this sentence is on one line.
    assert!(by_file.stderr.starts_with(&expected), "{by_file:?}");
    assert!(by_file.stderr.contains("`mk models` lists the models"), "{by_file:?}");
    assert!(!by_file.stderr.contains("GET /"), "{by_file:?}");
}
