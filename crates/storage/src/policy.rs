//! What to merge next: sizes in, a piece of work or none out. No files, no clock.
//!
//! Within a stack, tables of similar size are merged once there are some of them, so a row is rewritten about once each
//! time the data above the bottom has grown fourfold. The bottom is rewritten when what lies on it has about half its
//! size, or when many of its rows are deleted. A piece takes neighbouring stacks that need the same, up to a bounded
//! number of bytes; so it needs a bounded space, and no merge takes long.
//!
//! Keeps: every store comes to rest. A piece always makes a stack flatter or removes its tombstones.

mod room;

use std::ops::Range;

use crate::table_facts::RowCounts;
use room::Budget;
pub(crate) use room::Room;

/// A deleted row is worth a merge to the bottom when tombstones are this part of the rows of a stack,
const TOMBSTONES_PART: u64 = 4;
/// or this part while there is nothing else to do.
const TOMBSTONES_PART_IDLE: u64 = 16;
/// Rows are probably replaced by smaller ones when those above the bottom are this part of its rows,
const OVERWRITTEN_PART: u64 = 2;
/// or this part while there is nothing else to do,
const OVERWRITTEN_PART_IDLE: u64 = 8;
/// and have at most this part of its bytes.
const SMALLER_PART: u64 = 4;
/// Where it is known what was replaced, a merge is worth it for this part of what it reads: so an idle store takes at most
/// 1.2 times what its rows need.
const REPLACED_PART: u64 = 6;
/// An idle stack below this part of a piece is merged for any tombstone.
const TINY_PART: u64 = 32;
/// How much deletions count against the number of tables in a stack, when the next stack is chosen.
const TOMBSTONES_WEIGHT: usize = 8;
/// A slice is similar to those above it up to this multiple of their mean.
const SIMILAR_MULTIPLE: u64 = 2;
/// What a merge needs besides the bytes of its rows: filters, indexes, the manifest.
const SPACE_EXTRA_BYTES: u64 = 64 << 10;

/// A slice of a stack, as far as the choice depends on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SliceSize {
    pub(crate) rows: RowCounts,
    /// About how many of its bytes are replaced by rows above; zero while nobody has looked.
    pub(crate) replaced_bytes: u64,
    /// Whether it was looked up what its rows replace in the slices below.
    pub(crate) looked_up: bool,
    /// Whether the table lies in other stacks too, so that its file stays.
    pub(crate) shared: bool,
    /// Whether most of the table was merged in other stacks, so that its file is kept for little.
    pub(crate) wasteful: bool,
    /// Whether no merge may read it: a part of the table is damaged, or a merge of its stack takes more space than there is.
    pub(crate) left_alone: bool,
}

/// The slices of a stack, newest first.
pub(crate) type StackSizes = Vec<SliceSize>;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// So many tables of similar size are merged.
    pub(crate) similar_tables: usize,
    /// About how many bytes one piece reads.
    pub(crate) piece_bytes: u64,
    /// With so many tables in a stack they are merged whatever their sizes are.
    pub(crate) depth_max: usize,
}

/// What the store may and should do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Situation {
    Busy,
    /// Nothing was written for a while.
    Idle,
    /// Space is short.
    Short(Room),
}

/// One merge: a window of slices in each of some neighbouring stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) stacks: Range<usize>,
    pub(crate) windows: Vec<Range<usize>>,
    /// All windows are whole stacks, so tombstones disappear and the borders inside are drawn anew.
    pub(crate) to_bottom: bool,
    /// About how many bytes are read.
    pub(crate) bytes: u64,
    /// About how many bytes are written at most.
    pub(crate) bytes_needed: u64,
    /// The bytes of files that go as soon as it is done.
    pub(crate) bytes_released: u64,
}

/// What one stack needs.
struct Want {
    window: Range<usize>,
    to_bottom: bool,
    /// It is wanted for the space that it frees.
    frees: bool,
    /// The stack with the most is served first.
    weight: usize,
}

/// The next piece, if any is due.
pub(crate) fn next_piece(stacks: &[StackSizes], settings: &Settings, situation: Situation) -> Option<Piece> {
    let mut wants: Vec<Option<Want>> = stacks.iter().map(|stack| want(stack, settings, situation)).collect();
    if let Situation::Short(room) = situation {
        let budget = Budget::new(stacks, room);
        if let Some(piece) = most_freeing(stacks, settings, &budget) {
            return Some(piece);
        }
        for (want, stack) in wants.iter_mut().zip(stacks) {
            want.take_if(|want| want.frees && !budget.allows(&stack[want.window.clone()], want.to_bottom));
        }
    }
    let mut places: Vec<usize> = (0..wants.len()).filter(|place| wants[*place].is_some()).collect();
    places.sort_by_key(|place| std::cmp::Reverse(wants[*place].as_ref().map(|want| want.weight)));
    let Situation::Short(room) = situation else {
        return places.first().map(|place| widen(stacks, settings, &wants, *place));
    };
    // The heaviest that fits, with its neighbours or alone.
    places.into_iter().find_map(|place| {
        let frees = wants[place].as_ref().is_some_and(|want| want.frees);
        let fits = |piece: &Piece| {
            piece.bytes_needed <= if frees { room.for_freeing(piece.bytes_released) } else { room.for_others() }
        };
        let wide = widen(stacks, settings, &wants, place);
        let alone = |wide: Piece| (wide.stacks.len() > 1).then(|| alone(stacks, settings, &wide, place));
        if fits(&wide) { Some(wide) } else { alone(wide).filter(fits) }
    })
}

/// The part of a piece that concerns one of its stacks.
pub(crate) fn alone(stacks: &[StackSizes], settings: &Settings, piece: &Piece, place: usize) -> Piece {
    let window = piece.windows[place - piece.stacks.start].clone();
    piece_of(stacks, settings, place..place + 1, vec![window; 1], piece.to_bottom)
}

/// Extends the piece of one stack to its neighbours.
fn widen(stacks: &[StackSizes], settings: &Settings, wants: &[Option<Want>], place: usize) -> Piece {
    let first = wants[place].as_ref().expect("the heaviest want");
    let to_bottom = first.to_bottom;
    let mut bytes = bytes_of(&stacks[place][first.window.clone()]);
    let mut span = place..place + 1;
    // A stack that needs the same joins. So does a small one, if the borders are drawn anew anyway.
    let joins = |other: usize, bytes: u64| {
        let stack = stacks.get(other)?;
        let window = match &wants[other] {
            Some(want) if want.to_bottom == to_bottom => want.window.clone(),
            _ if to_bottom && is_small(stack, settings) => 0..stack.len(),
            _ => return None,
        };
        let total = bytes + bytes_of(&stack[window]);
        (total <= settings.piece_bytes).then_some(total)
    };
    while let Some(total) = joins(span.end, bytes) {
        (span.end, bytes) = (span.end + 1, total);
    }
    while let Some(total) = span.start.checked_sub(1).and_then(|before| joins(before, bytes)) {
        (span.start, bytes) = (span.start - 1, total);
    }
    let windows = span.clone().map(|place| match &wants[place] {
        Some(want) if want.to_bottom == to_bottom => want.window.clone(),
        _ => 0..stacks[place].len(),
    });
    let windows: Vec<_> = windows.collect();
    piece_of(stacks, settings, span, windows, to_bottom)
}

/// A piece with its sizes.
fn piece_of(
    stacks: &[StackSizes],
    settings: &Settings,
    span: Range<usize>,
    windows: Vec<Range<usize>>,
    to_bottom: bool,
) -> Piece {
    let slices = || span.clone().zip(&windows).map(|(place, window)| &stacks[place][window.clone()]);
    let written = |window: &[SliceSize]| {
        let rows = total_of(window);
        (if to_bottom { rows.live_bytes } else { rows.bytes() }).saturating_sub(replaced_bytes(window))
    };
    let bytes = slices().map(bytes_of).sum();
    let bytes_needed = with_extra(of_a_cut(slices().map(written).sum(), bytes, settings));
    let bytes_released = match is_cut(bytes, settings) {
        true => 0,
        false => slices().map(room::unshared_bytes).sum(),
    };
    Piece { stacks: span, windows, to_bottom, bytes, bytes_needed, bytes_released }
}

fn is_small(stack: &[SliceSize], settings: &Settings) -> bool {
    bytes_of(stack) < settings.piece_bytes / 4 && is_readable(stack)
}

pub(crate) fn is_readable(slices: &[SliceSize]) -> bool {
    !slices.iter().any(|slice| slice.left_alone)
}

/// What a single stack needs.
fn want(stack: &[SliceSize], settings: &Settings, situation: Situation) -> Option<Want> {
    let whole = |frees: bool, extra: usize| Want {
        window: 0..stack.len(),
        to_bottom: true,
        frees,
        weight: stack.len() + extra,
    };
    let down_to = |last: usize, extra: usize| {
        let to_bottom = last + 1 == stack.len();
        Want { window: 0..last + 1, to_bottom, frees: true, weight: stack.len() + extra }
    };
    let readable = is_readable(stack);
    let total = total_of(stack);
    let idle = situation == Situation::Idle;
    let part = if idle { TOMBSTONES_PART_IDLE } else { TOMBSTONES_PART };
    // The counts of a stack that was cut are estimates; in a small one they may be far off.
    let small = idle && total.bytes() < settings.piece_bytes / TINY_PART;
    if readable && total.tombstones > 0 && (small || total.tombstones * part >= total.rows) {
        return Some(whole(true, TOMBSTONES_WEIGHT));
    }
    if readable && is_overwritten(stack, idle) {
        return Some(whole(true, TOMBSTONES_WEIGHT));
    }
    if let Some(last) = replaced(stack) {
        return Some(down_to(last, TOMBSTONES_WEIGHT));
    }
    if situation != Situation::Busy
        && let Some(last) = stack.iter().rposition(|slice| slice.wasteful)
        && is_readable(&stack[..=last])
    {
        return Some(down_to(last, 0));
    }
    let (bottom, above) = stack.split_last()?;
    // Between two and three fifths, so that the stacks of an evenly written store do not all come due at once.
    let percent = 40 + bottom.rows.bytes() % 21;
    let heavy = bytes_of(above) >= bottom.rows.bytes() / 100 * percent;
    let heavy = readable && stack.len() >= settings.similar_tables && heavy;
    let windows = (0..above.len()).filter_map(|start| {
        let end = similar_end(stack, start, above.len() + usize::from(readable), settings)?;
        Some(start..end)
    });
    for window in windows {
        if window.end == stack.len() {
            return Some(whole(false, 0));
        }
        // Even where the bottom is due, small tables come first: many stacks may wait for their bottoms, and reads
        // would look into ever more tables meanwhile.
        if !heavy || bytes_of(&stack[window.clone()]) < total.bytes() / 8 {
            return Some(Want { window, to_bottom: false, frees: false, weight: stack.len() });
        }
    }
    if heavy {
        return Some(whole(false, 0));
    }
    let undamaged = stack.iter().take_while(|slice| !slice.left_alone).count().min(above.len());
    let deep = stack.len() >= settings.depth_max && undamaged >= 2;
    deep.then_some(Want { window: 0..undamaged, to_bottom: false, frees: false, weight: stack.len() })
}

/// Whether most of what the bottom holds is probably replaced by something much smaller, such as the notes that things
/// were deleted. Tables of few bytes would wait long for a merge by their size.
fn is_overwritten(stack: &[SliceSize], idle: bool) -> bool {
    let Some((bottom, above)) = stack.split_last() else { return false };
    let rows: u64 = above.iter().map(|slice| slice.rows.rows).sum();
    let part = if idle { OVERWRITTEN_PART_IDLE } else { OVERWRITTEN_PART };
    rows > 0 && rows * part >= bottom.rows.rows && bytes_of(above) * SMALLER_PART <= bottom.rows.bytes()
}

/// The lowest slice down to which a merge would free enough.
fn replaced(stack: &[SliceSize]) -> Option<usize> {
    let frees_enough = |last: &usize| {
        let window = &stack[..=*last];
        let freed = replaced_bytes(window);
        freed > 0 && freed * REPLACED_PART >= bytes_of(window) && is_readable(window)
    };
    (1..stack.len()).rev().find(frees_enough)
}

/// The end of the window that starts at `start`, if enough tables of similar size lie there.
fn similar_end(stack: &[SliceSize], start: usize, end_max: usize, settings: &Settings) -> Option<usize> {
    let bytes = |place: usize| stack[place].rows.bytes();
    let usable = |place: usize| place < end_max && !stack[place].left_alone;
    if !usable(start) {
        return None;
    }
    let (mut end, mut sum) = (start + 1, bytes(start));
    while usable(end) && bytes(end) * (end - start) as u64 <= SIMILAR_MULTIPLE * sum {
        sum += bytes(end);
        end += 1;
    }
    if end - start < settings.similar_tables {
        return None;
    }
    // The merge is worth taking along whatever is not larger than itself, or it would soon be merged with it anyway.
    while usable(end) && bytes(end) <= sum + sum / 4 {
        sum += bytes(end);
        end += 1;
    }
    Some(end)
}

/// The merge to the bottom that frees most for the space that it takes.
fn most_freeing(stacks: &[StackSizes], settings: &Settings, budget: &Budget) -> Option<Piece> {
    let output_of = |stack: &StackSizes| of_a_cut(bottom_output(stack), bytes_of(stack), settings);
    let released_by = |stack: &StackSizes| match is_cut(bytes_of(stack), settings) {
        true => 0,
        false => room::unshared_bytes(stack),
    };
    let gain = |stack: &StackSizes| {
        let (bytes, output) = (of_a_cut(bytes_of(stack), bytes_of(stack), settings), output_of(stack));
        let garbage = bytes.saturating_sub(output);
        let frees_something = garbage > 0 && garbage >= bytes / 16;
        let fits = with_extra(output) <= budget.room.for_freeing(released_by(stack)) && budget.allows(stack, true);
        if !is_readable(stack) || !frees_something || !fits {
            return None;
        }
        // A shared file stays until the last stack has merged it.
        let freed: u64 = stack.iter().map(|slice| slice.rows.bytes() / if slice.shared { 4 } else { 1 }).sum();
        let freed = of_a_cut(freed, bytes_of(stack), settings);
        Some(freed.max(garbage / 4) * 1_000 / with_extra(output))
    };
    let gains = stacks.iter().enumerate().filter_map(|(place, stack)| Some((gain(stack)?, std::cmp::Reverse(place))));
    let (_, std::cmp::Reverse(place)) = gains.max()?;
    let mut piece = Piece {
        stacks: place..place + 1,
        windows: std::iter::once(0..stacks[place].len()).collect(),
        to_bottom: true,
        bytes: bytes_of(&stacks[place]),
        bytes_needed: with_extra(output_of(&stacks[place])),
        bytes_released: released_by(&stacks[place]),
    };
    // Neighbours that are worth it too share the cost of the manifest.
    while let Some(stack) = stacks.get(piece.stacks.end).filter(|stack| gain(stack).is_some()) {
        let bytes = piece.bytes + bytes_of(stack);
        let needed = piece.bytes_needed + output_of(stack);
        let released = piece.bytes_released + released_by(stack);
        if bytes > settings.piece_bytes || needed > budget.room.for_freeing(released) {
            break;
        }
        piece.stacks.end += 1;
        piece.windows.push(0..stack.len());
        (piece.bytes, piece.bytes_needed, piece.bytes_released) = (bytes, needed, released);
    }
    Some(piece)
}

/// About how many bytes are left of a stack that is merged to the bottom: what was not found to be replaced, less what
/// other tombstones delete, if each meets a row of mean size.
pub(crate) fn bottom_output(stack: &[SliceSize]) -> u64 {
    let total = total_of(stack);
    let not_replaced = total.live_bytes.saturating_sub(replaced_bytes(stack));
    let values = total.rows - total.tombstones;
    let unknown: u64 = stack.iter().filter(|slice| !slice.looked_up).map(|slice| slice.rows.tombstones).sum();
    let output = u128::from(not_replaced) * u128::from(values.saturating_sub(unknown)) / u128::from(values.max(1));
    u64::try_from(output).unwrap_or(not_replaced)
}

/// The part of `bytes` that is left after a stack of this size was cut, as one that is too large for a piece is.
fn of_a_cut(bytes: u64, stack_bytes: u64, settings: &Settings) -> u64 {
    match is_cut(stack_bytes, settings) {
        true => u64::try_from(u128::from(bytes) * u128::from(settings.piece_bytes) / u128::from(stack_bytes))
            .unwrap_or(bytes),
        false => bytes,
    }
}

/// Whether a stack of this size is cut before it is merged. Both parts share its tables then.
fn is_cut(stack_bytes: u64, settings: &Settings) -> bool {
    stack_bytes > settings.piece_bytes + settings.piece_bytes / 2
}

fn with_extra(bytes: u64) -> u64 {
    bytes + bytes / 16 + SPACE_EXTRA_BYTES
}

fn total_of(stack: &[SliceSize]) -> RowCounts {
    let mut total = RowCounts::default();
    stack.iter().for_each(|slice| total.add(&slice.rows));
    total
}

fn replaced_bytes(slices: &[SliceSize]) -> u64 {
    slices.iter().map(|slice| slice.replaced_bytes).sum()
}

fn bytes_of(slices: &[SliceSize]) -> u64 {
    slices.iter().map(|slice| slice.rows.bytes()).sum()
}

#[cfg(test)]
#[path = "policy/full_disk_tests.rs"]
mod full_disk_tests;
#[cfg(test)]
#[path = "policy/tests.rs"]
mod tests;
