//! Placeholders in the arguments of a [`super::ToolRun`], the same on every provider:
//!
//! | placeholder | stands for |
//! |---|---|
//! | `{data:LABEL}` | path of a data slot of the component; `inUse` is the one in use |
//! | `{file:NAME}` | a file that the provider keeps outside the evidence |
//! | `{name}` `{peerUrl}` `{clientUrl}` `{initialCluster}` `{token}` | how the etcd member was started |

/// Replaces every `{…}` of `text`; values are not looked at again.
///
/// # Errors
/// What `value` says of a name that it does not know, and a brace that is not closed.
pub fn substitute(text: &str, value: &dyn Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let close = rest[open..].find('}').ok_or_else(|| format!("`{{` without `}}` in {text:?}"))? + open;
        out.push_str(&rest[..open]);
        out.push_str(&value(&rest[open + 1..close])?);
        rest = &rest[close + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// What is said of a name that stands for nothing.
#[must_use]
pub fn unknown(name: &str) -> String {
    format!(
        "unknown placeholder {{{name}}}; there are {{data:LABEL}}, {{file:NAME}}, {{name}}, {{peerUrl}}, \
         {{clientUrl}}, {{initialCluster}} and {{token}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_once_and_unknown_ones_refused() {
        let value = |name: &str| match name {
            "name" => Ok("{peerUrl}".to_owned()),
            other => Err(format!("unknown {other}")),
        };
        assert_eq!(substitute("a={name},b={name}", &value).unwrap(), "a={peerUrl},b={peerUrl}");
        assert_eq!(substitute("plain", &value).unwrap(), "plain");
        assert!(substitute("{nope}", &value).is_err());
        assert!(substitute("{name", &value).is_err());
    }
}
