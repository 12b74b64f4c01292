//! What API servers' own metrics say of a level.

use super::LEVELS;
use crate::agent::api::ApiAccess;
use crate::apf::metrics::{self, Scrape};
use crate::apf::seats::{DEFAULT_SERVER_SEATS, SeatLimits, Shares, limits};
use crate::component::ComponentId;
use crate::fault::FaultError;
use hyper::Method;
use serde_json::Value;
use std::collections::BTreeMap;

/// What an API server's metrics say of flow control.
///
/// # Errors
/// When they can't be had or read.
pub async fn scrape(api: &dyn ApiAccess, server: &ComponentId) -> Result<Scrape, String> {
    let answer = api.call(server, Method::GET, "/metrics", None).await?;
    if !answer.is_success() {
        return Err(format!("{server}: /metrics: {}", answer.refusal()));
    }
    metrics::read(&String::from_utf8_lossy(&answer.body)).map_err(|error| error.to_string())
}

/// Whether an API server has flow control at all; its API is served where it is off too.
pub(super) async fn is_on(api: &dyn ApiAccess, server: &ComponentId) -> Result<(), FaultError> {
    let expected = || format!("{server} limits requests by their priority level");
    let scrape = scrape(api, server).await.map_err(|why| FaultError::Untold { expected: expected(), why })?;
    if scrape.levels.is_empty() {
        let seen = "its metrics name no level: API Priority and Fairness is off".to_owned();
        return Err(FaultError::NotSeen { expected: expected(), seen });
    }
    Ok(())
}

/// Whether an API server counts with the limits that follow from every level that there is.
///
/// # Errors
/// When it does not yet, or can't be asked.
pub async fn limits_in_force(
    api: &dyn ApiAccess,
    server: &ComponentId,
    name: &str,
) -> Result<String, FaultError> {
    let expected = || format!("{server} limits `{name}` as its shares say");
    let untold = |why: String| FaultError::Untold { expected: expected(), why };
    let listed = api.call(server, Method::GET, LEVELS, None).await.map_err(untold)?;
    if !listed.is_success() {
        return Err(untold(format!("{LEVELS}: {}", listed.refusal())));
    }
    let scrape = scrape(api, server).await.map_err(untold)?;
    let levels = shares_of(&listed.json());
    let shares: BTreeMap<&str, Shares> =
        levels.iter().map(|(name, shares)| (name.as_str(), *shares)).collect();
    let seen = scrape.levels.get(name).cloned().unwrap_or_default();
    let counted = (seen.nominal, seen.lower, seen.upper);
    let Some(SeatLimits { nominal, lower, upper }) = limits(DEFAULT_SERVER_SEATS, &shares).get(name).copied()
    else {
        return Err(FaultError::NotSeen { expected: expected(), seen: "it has no such level".to_owned() });
    };
    let current = seen.current.is_some_and(|current| (lower..=upper).contains(&current));
    if counted != (Some(nominal), Some(lower), Some(upper)) || !current {
        let seen = format!(
            "nominal, lower, upper and current seats are {:?}, {:?}, {:?} and {:?}, for {nominal}, {lower}, {upper}",
            seen.nominal, seen.lower, seen.upper, seen.current
        );
        return Err(FaultError::NotSeen { expected: expected(), seen });
    }
    Ok(format!(
        "{server} has {nominal} nominal, {lower} lower, {upper} upper and {} current seats for {name}",
        seen.current.unwrap_or_default()
    ))
}

/// Shares of every level in a list; an exempt level has none unless it says so.
fn shares_of(list: &Value) -> BTreeMap<String, Shares> {
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |item: &Value| {
        let (spec, default) = match item["spec"]["type"].as_str() {
            Some("Exempt") => (&item["spec"]["exempt"], 0),
            _ => (&item["spec"]["limited"], 30),
        };
        let shares = Shares {
            nominal: spec["nominalConcurrencyShares"].as_u64().unwrap_or(default),
            lendable_percent: spec["lendablePercent"].as_u64().unwrap_or(0),
            borrowing_percent: spec["borrowingLimitPercent"].as_u64(),
        };
        Some((item["metadata"]["name"].as_str()?.to_owned(), shares))
    };
    items.iter().filter_map(of).collect()
}
