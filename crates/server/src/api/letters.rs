//! Dead letters: messages that their group refused.

use contract::access::{Area, Verb};
use contract::time::iso;
use statehouse::{DeadLetter as Letter, DeadLetterCursor, Group};
use wire::letters::{ChooseLetter, DeadLetter, LetterDone, LetterList, ListLetters};
use wire::operations::NoBody;
use wire::query::NoQuery;
use wire::values::PageCursor;

use super::{Answered, Call, Refusal, Reply, page_limit};
use crate::Server;
use crate::access::Permission;

/// The default number of letters in a page.
const PAGE_ROWS: usize = 100;

/// What it needs to deal with a letter, which is its group's.
pub(crate) fn choosing() -> Permission<NoQuery, ChooseLetter> {
    let (verb, area) = (Verb::Operate, Area::Message);
    Permission::of(format!("{verb} {area}"), move |asking, needs| match asking.group {
        Some(group) => needs.thing(verb, area, Some(group), group),
        None => needs.everything(verb, area),
    })
}

pub(crate) async fn list(server: Server, call: Call<ListLetters, NoBody>) -> Answered<LetterList> {
    let Call { scope, query, .. } = call;
    let limit = page_limit(query.limit, PAGE_ROWS)?;
    let after = query.cursor.map(cursor).transpose()?;
    let memory = server.reserve_page().await?;
    let handles = scope.open(&server.house)?;
    let found = server
        .call(move |_| handles.of(|group| group.dead_letters(after, limit), |space| space.dead_letters(after, limit)));
    let found = found.await?;
    let letters = found.letters.into_iter().map(shown).collect();
    let cursor = found.next.map(|next| PageCursor(next.to_string().into_bytes()));
    Ok(Reply::page(LetterList { letters, cursor }, memory))
}

fn cursor(cursor: PageCursor) -> Result<DeadLetterCursor, Refusal> {
    let parsed = cursor.into_text().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| Refusal::invalid("cursor", "the cursor is none of a list of dead letters"))
}

fn shown(letter: Letter) -> DeadLetter {
    DeadLetter {
        group: letter.group,
        number: letter.number,
        source: letter.source,
        at: iso(letter.refused_us),
        until: iso(letter.until_us),
        code: letter.refusal.code().to_owned(),
        detail: letter.refusal.to_string(),
        names: letter.names,
    }
}

pub(crate) async fn retry(server: Server, call: Call<NoQuery, ChooseLetter>) -> Answered<LetterDone> {
    of_letter(server, call, |group, number| group.retry_dead_letter_later(number)).await
}

pub(crate) async fn drop(server: Server, call: Call<NoQuery, ChooseLetter>) -> Answered<LetterDone> {
    of_letter(server, call, |group, number| group.drop_dead_letter_later(number)).await
}

async fn of_letter(
    server: Server,
    call: Call<NoQuery, ChooseLetter>,
    act: fn(&Group, u64) -> statehouse::Pending<u64>,
) -> Answered<LetterDone> {
    let Call { scope, body, .. } = call;
    let handles = scope.open(&server.house)?;
    let number = body.number;
    let pending = handles.of(|group| Some(act(group, number)), |_| None);
    let pending = pending
        .ok_or_else(|| Refusal::invalid("group", "group is missing: name the group that refused the message"))?;
    let commit = pending.await?;
    Ok(Reply::new(LetterDone { number, commit }).replayed(handles.replayed()))
}
