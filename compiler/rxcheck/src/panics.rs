//! Faults of rxcheck itself: a panic costs the file it happened on, and is reported as what it is.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};

thread_local! {
    static WHERE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Makes panics silent and remembered; call once, before [`catch`].
pub fn record() {
    set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        WHERE.with(|slot| {
            if let Ok(mut slot) = slot.try_borrow_mut() {
                *slot = place;
            }
        });
    }));
}

/// What `work` returns, or the words and the place of its panic.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // What `work` had in its hands when it panicked is dropped; callers share only data that is never changed.
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let place = WHERE.with(|slot| slot.try_borrow().map(|place| place.clone()).unwrap_or_default());
        format!("{} ({place})", words(&*payload))
    })
}

fn words(payload: &(dyn Any + Send)) -> &str {
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "panic without words",
    }
}

#[cfg(test)]
mod tests {
    use super::{catch, record};

    #[test]
    fn a_panic_becomes_words_and_a_place() {
        record();
        assert_eq!(catch(|| 1), Ok(1));
        let said = catch::<()>(|| panic!("made to, {}", 1)).expect_err("a panic");
        assert!(said.starts_with("made to, 1 (") && said.contains("panics.rs:"), "{said}");
    }
}
