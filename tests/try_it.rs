use quakeproof::check::judge;
use quakeproof::check::objectives::Linearizable;
use quakeproof::drill::spec::Objective;
use quakeproof::plan::PlannedObjective;
#[test]
fn try_it() {
    for dir in ["/tmp/hist/bump", "/tmp/hist/nobump"] {
        let mut input = quakeproof::evidence::load::load(std::path::Path::new(dir)).unwrap();
        let objective = Linearizable::default();
        input.plan.objectives = vec![PlannedObjective { name: "linearizable".into(), objective: Objective::Linearizable(objective), predicted: None }];
        let start = std::time::Instant::now();
        let j = judge(&input);
        println!("{dir} {:?}\n{:#?}", start.elapsed(), j.findings);
    }
}
