//! Where objects are kept, from the text of a setting: a folder, or a bucket with a prefix.
//!
//! Touches: nothing. Keeps: what is said about a target has no secret in it. Never: opens it.

use std::path::PathBuf;

use crate::error::ObjectsError;
use crate::names;

const NEXT: &str = "give an absolute path, a file:// URL, or s3://bucket/prefix";

/// Where objects are kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Folder(PathBuf),
    /// The prefix is empty, or a name without `/` at its ends.
    Bucket {
        bucket: String,
        prefix: String,
    },
}

impl Target {
    /// Reads the text.
    pub(crate) fn parse(text: &str) -> Result<Self, ObjectsError> {
        if let Some(path) = text.strip_prefix("file://") {
            // Not decoded: a folder with such a letter is given as a path.
            if path.contains(['%', '?', '#']) {
                return Err(refused(text, "a file:// URL with %, ? or # is not supported"));
            }
            return folder(text, path);
        }
        if let Some(place) = text.strip_prefix("s3://") {
            return bucket(text, place);
        }
        if text.contains("://") {
            return Err(refused(text, "only file:// and s3:// are supported"));
        }
        folder(text, text)
    }

    /// For messages.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Folder(path) => path.display().to_string(),
            Self::Bucket { bucket, prefix } if prefix.is_empty() => format!("s3://{bucket}"),
            Self::Bucket { bucket, prefix } => format!("s3://{bucket}/{prefix}"),
        }
    }
}

fn folder(text: &str, path: &str) -> Result<Target, ObjectsError> {
    if !path.starts_with('/') {
        return Err(refused(text, "the path is not absolute"));
    }
    if path.contains('\0') {
        return Err(refused(text, "the path has a zero byte"));
    }
    Ok(Target::Folder(PathBuf::from(path)))
}

fn bucket(text: &str, place: &str) -> Result<Target, ObjectsError> {
    let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
    let is_bucket = |name: &str| {
        let letters =
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte));
        (3..=63).contains(&name.len()) && letters
    };
    if !is_bucket(bucket) {
        return Err(refused(
            text,
            "a bucket has 3 to 63 lower-case letters, digits, . and -, and credentials come from the AWS_ variables",
        ));
    }
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    if !prefix.is_empty() {
        // So that a key of S3, of at most 1,024 bytes, has space for the longest name.
        if prefix.len() > 300 {
            return Err(refused(text, "the prefix is longer than 300 bytes"));
        }
        names::check(prefix).map_err(|reason| refused(text, &format!("the prefix is refused, since {reason}")))?;
    }
    Ok(Target::Bucket { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
}

fn refused(text: &str, reason: &str) -> ObjectsError {
    ObjectsError::Target { target: without_secrets(text), reason: reason.to_owned(), next: NEXT }
}

/// A URL without what stands in front of an `@` or behind a `?`.
fn without_secrets(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (rest, query) = rest.split_once('?').map_or((rest, ""), |(rest, _)| (rest, "?…"));
    // A secret may contain a slash.
    let rest = rest.rsplit_once('@').map_or(rest.to_owned(), |(_, host)| format!("…@{host}"));
    format!("{scheme}://{rest}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_buckets() {
        let folder = |path: &str| Target::Folder(PathBuf::from(path));
        let bucket = |bucket: &str, prefix: &str| Target::Bucket { bucket: bucket.into(), prefix: prefix.into() };
        for (text, expected, shown) in [
            ("/var/objects", folder("/var/objects"), "/var/objects"),
            ("file:///var/objects", folder("/var/objects"), "/var/objects"),
            ("s3://my-bucket", bucket("my-bucket", ""), "s3://my-bucket"),
            ("s3://my-bucket/", bucket("my-bucket", ""), "s3://my-bucket"),
            ("s3://my-bucket/a/b/", bucket("my-bucket", "a/b"), "s3://my-bucket/a/b"),
        ] {
            let target = Target::parse(text).unwrap();
            assert_eq!(target, expected);
            assert_eq!(target.shown(), shown);
        }
    }

    #[test]
    fn others_are_refused_by_name_without_secrets() {
        for (text, named) in [
            ("", "``"),
            ("objects", "`objects`"),
            ("./objects", "`./objects`"),
            ("file://host/objects", "`file://host/objects`"),
            ("file:///a%20b", "`file:///a%20b`"),
            ("gs://bucket/a", "`gs://bucket/a`"),
            ("https://user:secret@host/a?key=secret", "`https://…@host/a?…`"),
            ("s3://", "`s3://`"),
            ("s3://Upper", "`s3://Upper`"),
            ("s3://key:sec/ret@bucket/a", "`s3://…@bucket/a`"),
            ("s3://bucket/a?b=secret", "`s3://bucket/a?…`"),
            ("s3://bucket/a//b", "`s3://bucket/a//b`"),
            ("s3://bucket/../b", "`s3://bucket/../b`"),
        ] {
            let refused = Target::parse(text).unwrap_err().to_string();
            assert!(refused.starts_with(named), "{refused}");
            assert!(!refused.contains("sec"), "{refused}");
        }
    }
}
