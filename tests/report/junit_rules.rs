//! The rules that both schemas that are taken for JUnit's agree on: `JUnit.xsd` of windyroad/JUnit-Schema
//! (Ant's task) and `junit-10.xsd` of the Jenkins xUnit plugin. A document that keeps these is valid by either.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use std::collections::BTreeMap;

/// An element with its attributes and children.
#[derive(Debug, Default)]
pub struct Element {
    pub tag: String,
    pub attributes: BTreeMap<String, String>,
    pub children: Vec<Element>,
    pub text: String,
}

/// Reads a document; panics where it is not well-formed.
pub fn parse(xml: &str) -> Element {
    let mut reader = Reader::from_str(xml);
    let mut open = vec![Element::default()];
    loop {
        match reader.read_event().expect("well-formed") {
            Event::Start(start) => open.push(element(&start)),
            Event::Empty(start) => {
                let child = element(&start);
                open.last_mut().unwrap().children.push(child);
            }
            Event::End(_) => {
                let done = open.pop().unwrap();
                open.last_mut().unwrap().children.push(done);
            }
            Event::Text(text) => open.last_mut().unwrap().text.push_str(&text.decode().unwrap()),
            Event::GeneralRef(reference) => {
                open.last_mut().unwrap().text.push_str(&format!("&{};", reference.decode().unwrap()));
            }
            Event::Decl(_) => {}
            Event::Eof => break,
            other => panic!("a report has no {other:?}"),
        }
    }
    assert_eq!(open.len(), 1);
    let mut root = open.remove(0);
    assert_eq!(root.children.len(), 1, "one root");
    root.children.remove(0)
}

fn element(start: &BytesStart<'_>) -> Element {
    let attributes = start.attributes().map(|attribute| {
        let attribute = attribute.expect("well-formed");
        let key = String::from_utf8(attribute.key.as_ref().to_vec()).unwrap();
        (key, String::from_utf8(attribute.value.to_vec()).unwrap())
    });
    Element {
        tag: String::from_utf8(start.name().as_ref().to_vec()).unwrap(),
        attributes: attributes.collect(),
        ..Element::default()
    }
}

/// Panics with the rule that is broken.
pub fn check(xml: &str) {
    let root = parse(xml);
    assert_eq!(root.tag, "testsuites");
    assert!(root.attributes.is_empty(), "Ant's schema allows no attributes here: {:?}", root.attributes);
    for (id, suite) in root.children.iter().enumerate() {
        check_suite(suite, id);
    }
}

fn keys(element: &Element) -> Vec<&str> {
    element.attributes.keys().map(String::as_str).collect()
}

fn check_suite(suite: &Element, id: usize) {
    assert_eq!(suite.tag, "testsuite");
    assert_eq!(
        keys(suite),
        ["errors", "failures", "hostname", "id", "name", "package", "skipped", "tests", "time", "timestamp"],
        "all of them are asked for by one schema, and no other is allowed by both"
    );
    let of = |key: &str| suite.attributes[key].as_str();
    assert_eq!(of("id"), id.to_string());
    assert!(!of("name").trim().is_empty() && !of("hostname").trim().is_empty());
    let timestamp = of("timestamp");
    let form: String = timestamp.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(form, "0000-00-00T00:00:00", "{timestamp}: neither zone nor fraction");
    is_decimal(of("time"));
    let tags: Vec<&str> = suite.children.iter().map(|c| c.tag.as_str()).collect();
    let cases = tags.len() - 3;
    let expected: Vec<&str> = ["properties"]
        .into_iter()
        .chain(vec!["testcase"; cases])
        .chain(["system-out", "system-err"])
        .collect();
    assert_eq!(tags, expected, "in this order");
    for property in &suite.children[0].children {
        assert_eq!((property.tag.as_str(), keys(property)), ("property", vec!["name", "value"]));
        assert!(!property.attributes["name"].trim().is_empty());
    }
    let mut counted = BTreeMap::from([("failure", 0), ("error", 0)]);
    for case in &suite.children[1..=cases] {
        assert_eq!(keys(case), ["classname", "name", "time"]);
        is_decimal(&case.attributes["time"]);
        assert!(case.children.len() <= 1, "one failure or error, and nothing else");
        for trouble in &case.children {
            assert_eq!(keys(trouble), ["message", "type"]);
            assert!(trouble.children.is_empty());
            *counted.get_mut(trouble.tag.as_str()).expect("failure or error") += 1;
        }
    }
    assert_eq!(of("tests"), cases.to_string());
    assert_eq!(of("failures"), counted["failure"].to_string());
    assert_eq!(of("errors"), counted["error"].to_string());
}

fn is_decimal(text: &str) {
    let good = text.split_once('.').is_some_and(|(whole, rest)| {
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        digits(whole) && digits(rest)
    });
    assert!(good, "{text} is not a decimal");
}
