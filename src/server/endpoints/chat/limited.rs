//! What a key with limits may not ask for: what would get round the models it is limited to, or the budget.
//!
//! A budget counts tokens at the price of the model that was asked. So a limited key gets the one model that it names,
//! and nothing that a provider charges for in another way. No list of such fields is complete, as providers invent
//! them; these are the known ones. Names are compared without regard to case, as some providers do.

use super::request::is_same_but_for_case;
use crate::inference::{Fields, Json};
use crate::server::reply::{ApiError, ErrorCode};

/// The fields with which some providers let a request choose further models, each at its own price: of `OpenRouter`
/// (<https://openrouter.ai/docs/guides/routing/model-fallbacks>, `plugins` may ask several models), of `LiteLLM`'s
/// proxy (<https://docs.litellm.ai/docs/proxy/client_side_fallbacks>), of Vercel's gateway
/// (<https://vercel.com/docs/ai-gateway/models-and-providers/model-fallbacks>).
const FURTHER_MODELS: [&str; 12] = [
    "models",
    "route",
    "preset",
    "plugins",
    "fallbacks",
    "context_window_fallbacks",
    "content_policy_fallbacks",
    "router_settings_override",
    "extra_body",
    "model_list",
    "user_config",
    "providerOptions",
];

/// The fields for what is charged beside the tokens of text, or changes their price: searches (of `OpenAI` and
/// `OpenRouter`, xAI, Alibaba, Perplexity, Groq, Azure's own data), code that runs at the provider (Alibaba, Groq),
/// answers in audio, and faster tiers.
const PAID_EXTRAS: [&str; 13] = [
    "web_search_options",
    "web_search",
    "search_parameters",
    "enable_search",
    "search_options",
    "search_settings",
    "compound_custom",
    "data_sources",
    "enable_code_interpreter",
    "mcp_servers",
    "modalities",
    "audio",
    "service_tier",
];

/// Fails if the request may make the provider answer with another model than the one it names, or ask another one as
/// well; with a budget, also if it asks for what costs more than the tokens of a text.
pub(super) fn check(fields: &Fields<'_>, has_budget: bool) -> Result<(), ApiError> {
    for (name, value) in fields.iter() {
        let is_any_of = |known: &[&str]| known.iter().any(|known| is_same_but_for_case(name, known));
        if is_any_of(&FURTHER_MODELS) && !value.is_null() {
            return Err(further_model(name));
        }
        if has_budget && is_any_of(&PAID_EXTRAS) && !is_free(name, value) {
            return Err(paid_extra(name));
        }
        // By another name, tools would not be looked into here.
        if name != "tools" && is_same_but_for_case(name, "tools") {
            return Err(further_model(name));
        }
    }
    let tools = fields.get("tools").and_then(Json::items).unwrap_or_default();
    for (at, tool) in tools.into_iter().enumerate() {
        check_tool(tool).map_err(|name| further_model(&format!("tools[{at}].{name}")))?;
    }
    Ok(())
}

/// Tools of other types run at the provider, and those of `OpenRouter` can ask other models. A second name that only
/// case tells from `type` could be the one that counts.
///
/// # Errors
/// With the name of the field at fault.
fn check_tool(tool: Json<'_>) -> Result<(), String> {
    let Ok(fields) = Fields::parse(tool.get()) else { return Err("type".to_owned()) };
    let is_twin = |name: &str| name != "type" && is_same_but_for_case(name, "type");
    if let Some((twin, _)) = fields.iter().find(|(name, _)| is_twin(name)) {
        return Err(twin.to_owned());
    }
    let own = fields.get("type").and_then(Json::string);
    if own.is_some_and(|own| matches!(&*own, "function" | "custom")) {
        Ok(())
    } else {
        Err("type".to_owned())
    }
}

/// Whether an extra is not asked for.
fn is_free(name: &str, value: Json<'_>) -> bool {
    match value.get() {
        "null" | "false" => true,
        "\"auto\"" | "\"default\"" => name == "service_tier",
        _ => name == "modalities" && value.read::<Vec<String>>().is_some_and(|kinds| kinds == ["text"]),
    }
}

fn further_model(path: &str) -> ApiError {
    let message = format!(
        "`{path}` lets the provider call other models. This API key may not do that: it is limited to certain \
         models, or it or its app has a budget. Leave it out; the server's operator can set fallbacks in server.toml"
    );
    ApiError::parameter(ErrorCode::UnsupportedParameter, path.to_owned(), message)
}

fn paid_extra(name: &str) -> ApiError {
    let message = format!(
        "`{name}` has costs beyond the tokens of a text, and this API key or its app has a budget. Leave it \
         out, or use a key without a budget"
    );
    ApiError::parameter(ErrorCode::UnsupportedParameter, name.to_owned(), message)
}
