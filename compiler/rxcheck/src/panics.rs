//! Handling of bugs in rxcheck itself: a panic affects only the file that caused it, and is reported as an internal
//! error.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};

thread_local! {
    static WHERE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Installs a panic hook that prints nothing and records the position. Call it once, before [`catch`].
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

/// Runs `work`; returns its result, or the message and position of its panic.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // Data that `work` owned is dropped when it panics; callers share only immutable data with it.
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
    fn panic_is_caught_with_message_and_place() {
        record();
        assert_eq!(catch(|| 1), Ok(1));
        let said = catch::<()>(|| panic!("made to, {}", 1)).expect_err("a panic");
        assert!(said.starts_with("made to, 1 (") && said.contains("panics.rs:"), "{said}");
    }
}
