//! Codes about who sends a request: of principals and tokens, which every server keeps, and of a server that asks for a token.

use serde_json::{Value as JsonValue, json};
use testkit::http::{Client, Request};
use testkit::server_process::{Launch, binary};

use super::Codes;
use crate::directories::fast_directory;

fn set(principal: &str, body: &JsonValue) -> Request {
    Request::put(format!("/v1/principals/{principal}")).body(body.to_string())
}

impl Codes<'_> {
    pub(super) fn principals(&mut self) {
        self.refused("SH-6003", 404, Request::get("/v1/principals/nobody"));
        self.refused("SH-6004", 404, Request::delete("/v1/tokens/0123456789"));
        self.sent(set("codes-one", &json!({ "grants": [], "identities": ["uid:7"] })));
        let taken = json!({ "grants": [], "identities": ["uid:7"] });
        self.refused("SH-6006", 409, set("codes-two", &taken));
        let live_max = contract::limits::TOKENS_LIVE_MAX;
        let issue = || Request::post("/v1/principals/codes-one/tokens");
        (0..live_max).for_each(|_| drop(self.sent(issue())));
        self.refused("SH-6005", 409, issue());
    }

    /// Codes of a server that asks who sends a request.
    pub(super) fn senders(&mut self) {
        let directory = fast_directory().expect("a directory");
        let data = directory.path().join("house");
        let launch = Launch::serve(binary(), &data).asking_for_tokens();
        let server = launch.start().expect("a server");
        let client = Client::to(server.address());
        let root = std::fs::read_to_string(data.join("root.token")).expect("the token of the first administrator");
        let mut codes = Codes { client: &client, found: std::mem::take(&mut self.found) };
        codes.unknown_and_not_granted(root.trim());
        self.found = codes.found;
    }

    fn unknown_and_not_granted(&mut self, root: &str) {
        let by = |token: &str, request: Request| request.header("authorization", format!("Bearer {token}"));
        self.refused("SH-6001", 401, Request::get("/v1/cells/a"));
        let writer = json!({ "grants": ["reader@default", "writer@shop"] });
        self.sent(by(root, Request::put("/v1/spaces/shop")));
        self.sent(by(root, set("codes", &writer)));
        let issued = self.sent(by(root, Request::post("/v1/principals/codes/tokens"))).json();
        let token = issued["token"].as_str().expect("a token");
        self.refused("SH-6002", 403, by(token, Request::put("/v1/cells/a")).body("1"));
        let opened = self.sent(by(token, Request::post("/v1/sessions?space=shop"))).json();
        let [session, secret] = ["session", "secret"].map(|member| opened[member].as_str().expect("text"));
        self.sent(by(root, set("codes", &json!({ "grants": ["writer@*"] }))));
        let other = by(token, Request::put("/v1/cells/a")).header("statehouse-session", session);
        let other = other.header("statehouse-session-secret", secret).header("statehouse-request", 1);
        self.refused("SH-5008", 422, other.body("1"));
        self.sent(by(root, set("codes", &json!({ "grants": ["writer@*"], "requests_per_second_max": 1 }))));
        let whoami = || by(token, Request::get("/v1/whoami"));
        // What it has saved up.
        let used_up = (0..1_000).any(|_| self.client.send(whoami()).is_ok_and(|answer| answer.status == 429));
        assert!(used_up, "a principal sends at its rate");
        self.refused("SH-6007", 429, whoami());
    }
}
