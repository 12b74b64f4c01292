//! Whether a plan is of a drill: the same drill, read again, with nothing left out and nothing put in.
//!
//! What a build of another version would resolve otherwise (targets, minimum evidence, predictions in words) is
//! not compared, and neither is which versions are pinned. Counts that are predicted of loads are: objectives are
//! judged by them.

use super::Plan;
use super::overrides::Overrides;
use super::predict::fates;
use crate::drill::parse;

/// Checks a plan against the text of its drill.
///
/// # Errors
/// What the plan says that the drill does not.
pub fn follows(plan: &Plan, text: &str) -> Result<(), String> {
    let mut set = plan.parameters.clone();
    set.extend(
        plan.overrides.iter().filter(|(key, _)| key.contains('.')).map(|(k, v)| (k.clone(), v.clone())),
    );
    let unread = |what: String| format!("drill.yaml can't be read as it was then: {what}");
    let overrides = Overrides::sort(&set, None, None).map_err(|e| unread(e.to_string()))?;
    let (mut drill, _) =
        parse::parse("drill.yaml", text, &overrides.parameters).map_err(|e| unread(e.to_string()))?;
    overrides.apply(&mut drill).map_err(|e| unread(e.to_string()))?;
    let versions = &plan.cluster.versions;
    let cluster = &mut drill.spec.cluster;
    for (asked, is) in [(&mut cluster.kubernetes, &versions.kubernetes), (&mut cluster.etcd, &versions.etcd)]
    {
        if asked.get_or_insert_with(|| is.clone()) != is {
            return Err(format!(
                "the plan is for {is}, the drill for {}",
                asked.as_deref().unwrap_or_default()
            ));
        }
    }
    if drill != plan.drill {
        return Err("its drill is not the one in drill.yaml".to_owned());
    }
    let spec = &drill.spec;
    let steps = plan.steps.iter().map(|planned| (planned.index, &planned.step));
    for (what, same) in [
        ("steps", steps.eq(spec.steps.iter().enumerate())),
        ("objectives", plan.objectives.iter().map(|planned| &planned.objective).eq(&spec.objectives)),
        ("clients", plan.clients.iter().filter_map(|planned| planned.spec.as_ref()).eq(&spec.clients)),
        ("steady state", plan.steady_state == spec.steady_state),
        ("limits", plan.limits == spec.limits),
        ("topology", plan.cluster.topology == spec.cluster.topology),
        ("provider", plan.cluster.provider == spec.cluster.provider),
        ("standing cluster", plan.cluster.standing == spec.cluster.name),
    ] {
        if !same {
            return Err(format!("its {what} are not those of drill.yaml"));
        }
    }
    if plan.flow != fates::predictions(&drill, versions, plan.seed) {
        return Err("its predictions of loads do not follow from its drill, version and seed".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::resolve::{ResolveInput, resolve};
    use super::*;
    use std::collections::BTreeMap;

    const DRILL: &str = include_str!("../../scenarios/etcd/restore-without-bump.yaml");

    fn plan(set: &[(&str, &str)], profile: Option<&str>) -> Plan {
        let set = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<BTreeMap<_, _>>();
        let input =
            ResolveInput { set, profile: profile.map(str::to_owned), ..ResolveInput::plain("d", DRILL) };
        resolve(input).unwrap()
    }

    #[test]
    fn a_plan_follows_from_its_drill_whatever_was_set() {
        for plan in [
            plan(&[], None),
            plan(&[], Some("fast")),
            plan(&[("hold", "7s"), ("cluster.kubernetes", "v1.30.4"), ("cluster.topology.etcd", "3")], None),
        ] {
            follows(&plan, DRILL).unwrap();
        }
    }

    #[test]
    fn a_plan_that_predicts_whatever_is_seen_does_not() {
        const QUEUE: &str = include_str!("../../scenarios/apf/zero-seat-queue.yaml");
        let mut plan = resolve(ResolveInput::plain("d", QUEUE)).unwrap();
        follows(&plan, QUEUE).unwrap();
        plan.flow[0].expected.ok.high = 1_000;
        assert!(follows(&plan, QUEUE).unwrap_err().contains("predictions"));
    }

    #[test]
    fn a_plan_from_which_something_was_taken_does_not() {
        let whole = plan(&[], None);
        let changed = |change: fn(&mut Plan)| {
            let mut plan = whole.clone();
            change(&mut plan);
            follows(&plan, DRILL).unwrap_err()
        };
        assert!(changed(|p| drop(p.objectives.pop())).contains("objectives"));
        assert!(changed(|p| p.clients.retain(|c| c.name != "watch")).contains("clients"));
        assert!(changed(|p| drop(p.steps.remove(1))).contains("steps"));
        assert!(changed(|p| drop(p.drill.spec.objectives.pop())).contains("drill.yaml"));
        assert!(changed(|p| p.cluster.topology.etcd = 3).contains("topology"));
        assert!(
            changed(|p| p.parameters.insert("hold".to_owned(), "1s".to_owned()).map(drop).unwrap())
                .contains("drill")
        );
    }
}
