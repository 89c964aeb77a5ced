//! A guard against requests that a page of another site has a browser send. Follows: `RestCsrfPreventionFilter`.

use crate::reply::Reply;
use crate::settings;
use base::Config;
use hyper::header::USER_AGENT;
use hyper::{HeaderMap, Method, StatusCode};
use regex::Regex;

/// Who must send a header that no page of another site can have a browser send.
#[derive(Debug)]
pub struct CsrfGuard {
    browsers: Vec<Regex>,
}

/// The header. What is in it does not matter.
const HEADER: &str = "x-xsrf-header";

impl CsrfGuard {
    /// As the settings have it; `None`: nobody is looked at.
    pub fn from_config(config: &Config) -> Option<CsrfGuard> {
        if !config.get(&settings::CSRF) {
            return None;
        }
        let patterns = config.text(settings::CSRF_BROWSERS.key).unwrap_or(settings::CSRF_BROWSERS.default);
        Some(CsrfGuard { browsers: patterns.split(',').filter_map(|pattern| whole(pattern).ok()).collect() })
    }

    /// Lets a request pass.
    ///
    /// # Errors
    /// 400 for what a browser sends without the header, unless it only asks.
    pub fn check(&self, method: &Method, headers: &HeaderMap) -> Result<(), Reply> {
        let only_asks = matches!(*method, Method::GET | Method::OPTIONS | Method::HEAD | Method::TRACE);
        let is_browser = || {
            let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok());
            agent.is_some_and(|agent| self.browsers.iter().any(|pattern| pattern.is_match(agent)))
        };
        if only_asks || headers.contains_key(HEADER) || !is_browser() {
            return Ok(());
        }
        Err(Reply::text(StatusCode::BAD_REQUEST, "Missing Required Header for CSRF Vulnerability Protection"))
    }
}

/// A pattern that must match the whole of a text.
pub fn whole(pattern: &str) -> Result<Regex, regex::Error> {
    Regex::new(&format!("^(?:{})$", pattern.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    #[test]
    fn a_browser_that_changes_something_must_send_the_header() {
        assert!(CsrfGuard::from_config(&Config::default()).is_none());
        let mut config = Config::default();
        config.set("hbase.rest.csrf.enabled", "true");
        let guard = CsrfGuard::from_config(&config).expect("it is on");
        let of = |method: Method, agent: Option<&'static str>, header: bool| {
            let mut headers = HeaderMap::new();
            agent.map(|agent| headers.insert(USER_AGENT, HeaderValue::from_static(agent)));
            header.then(|| headers.insert("X-XSRF-HEADER", HeaderValue::from_static("")));
            guard.check(&method, &headers).map_err(|reply| reply.status)
        };
        let browser = Some("Mozilla/5.0 (X11; Linux x86_64)");
        assert_eq!(of(Method::PUT, browser, false), Err(StatusCode::BAD_REQUEST));
        assert_eq!(of(Method::DELETE, Some("Opera/9.80"), false), Err(StatusCode::BAD_REQUEST));
        assert_eq!(of(Method::PUT, browser, true), Ok(()));
        assert_eq!(of(Method::GET, browser, false), Ok(()));
        assert_eq!(of(Method::POST, Some("curl/8.5.0"), false), Ok(()));
        assert_eq!(of(Method::POST, Some("like Mozilla/5.0"), false), Ok(()), "the whole of it must match");
        assert_eq!(of(Method::POST, None, false), Ok(()));
        config.set("hbase.rest-csrf.browser-useragents-regex", "^curl.*,x+");
        let guard = CsrfGuard::from_config(&config).expect("it is on");
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static("curl/8"));
        assert!(guard.check(&Method::POST, &headers).is_err());
    }
}
