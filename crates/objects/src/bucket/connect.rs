//! The connection to S3: settings from the environment, TLS, and the condition on the end of an upload.
//!
//! Touches: environment variables, and the process's choice of a TLS provider if there is none. Keeps: bytes leave this machine
//! encrypted, unless that is switched off by name. Never: sends a request.

use std::sync::Arc;

use async_trait::async_trait;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use object_store::{BackoffConfig, ClientConfigKey, ObjectStore, RetryConfig};

use crate::error::ObjectsError;

/// For one request, with the bytes of a part.
const REQUEST_TIMEOUT: &str = "120 seconds";
const RETRIES: usize = 6;

/// The store of a bucket.
pub(super) fn s3(bucket: &str, target: &str) -> Result<Arc<dyn ObjectStore>, ObjectsError> {
    let refused = |reason, next| ObjectsError::Target { target: target.to_owned(), reason, next };
    let mut builder = AmazonS3Builder::from_env();
    let value = |key| builder.get_config_value(&key);
    let endpoint = value(AmazonS3ConfigKey::S3Endpoint).or_else(|| value(AmazonS3ConfigKey::Endpoint));
    if let Some(endpoint) = endpoint.filter(|endpoint| is_plain(endpoint)) {
        let allowed = value(AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp)).is_some_and(|value| value == "true");
        if !allowed && !is_loopback(&endpoint) {
            let reason = "AWS_ENDPOINT_URL begins with http:// and is not on the loopback, so that bytes would travel \
                          unencrypted";
            return Err(refused(reason.to_owned(), "use https://, or set AWS_ALLOW_HTTP=true"));
        }
        let has_credentials = value(AmazonS3ConfigKey::AccessKeyId).is_some();
        builder = builder.with_config(AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp), "true");
        if has_credentials {
            // Nothing is asked over TLS. A machine without certificates would be refused for lack of them.
            let no_certificates = AmazonS3ConfigKey::Client(ClientConfigKey::NoSystemCertificates);
            builder = builder.with_config(no_certificates, "true");
        }
    }
    // Only the first of a process counts; a program that chose another keeps it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let retry = RetryConfig { backoff: BackoffConfig::default(), max_retries: RETRIES, ..RetryConfig::default() };
    let store = builder
        .with_bucket_name(bucket)
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::Timeout), REQUEST_TIMEOUT)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        // Not all stores have the other.
        .with_disable_bulk_delete(true)
        .with_retry(retry)
        .with_http_connector(ConditionalConnector)
        .build();
    Ok(Arc::new(store.map_err(|error| refused(error.to_string(), "check the variables that begin with AWS_"))?))
}

fn is_plain(endpoint: &str) -> bool {
    endpoint.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://"))
}

/// Whether an `http://` endpoint stays on this machine.
fn is_loopback(endpoint: &str) -> bool {
    let authority = endpoint.get(7..).unwrap_or_default().split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Connects with the condition that object_store's uploads in parts do not have: it sends `If-None-Match` with a single put and
/// with a copy, but completes an upload by replacing whatever is there.
#[derive(Debug)]
struct ConditionalConnector;

impl HttpConnector for ConditionalConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(ConditionalService(ReqwestConnector::default().connect(options)?)))
    }
}

#[derive(Debug)]
struct ConditionalService(HttpClient);

#[async_trait]
impl HttpService for ConditionalService {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let query = request.uri().query().unwrap_or_default();
        // The request is signed by now. Signatures cover the headers that they list, and object_store itself adds this header
        // behind the signature where it sends it.
        if request.method().as_str() == "POST" && query.split('&').any(|pair| pair.starts_with("uploadId=")) {
            request.headers_mut().insert("if-none-match", reqwest::header::HeaderValue::from_static("*"));
        }
        self.0.execute(request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_loopback_is_plain_without_asking() {
        for endpoint in ["http://127.0.0.1:8333", "HTTP://localhost/", "http://[::1]:9000", "http://127.9.9.9?x"] {
            assert!(is_plain(endpoint) && is_loopback(endpoint), "{endpoint}");
        }
        for endpoint in ["http://10.0.0.1", "http://127.0.0.1@store.example", "http://localhost.example", "http://"] {
            assert!(is_plain(endpoint) && !is_loopback(endpoint), "{endpoint}");
        }
        assert!(!is_plain("https://store.example"));
    }
}
