//! Nested futures. A future polls those inside it, so the stack grows with the nesting of texts, blocks and procedures:
//! each level ensures room for itself.

use std::future::{pending, Future};
use std::mem::replace;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The most stack of a level without those inside it: parsing a text needs most.
const ROOM: usize = 1 << 20;
/// The stack added at a time, and freed after the poll.
const MORE: usize = 4 << 20;

/// A level of nested statements.
pub struct Deep<'a, T: 'a>(Pin<Box<dyn Future<Output = T> + Send + 'a>>);

impl<'a, T: 'a> Deep<'a, T> {
    pub fn new(level: impl Future<Output = T> + Send + 'a) -> Deep<'a, T> {
        Deep(Box::pin(level))
    }
}

impl<T> Future for Deep<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        stacker::maybe_grow(ROOM, MORE, || self.0.as_mut().poll(context))
    }
}

impl<T> Drop for Deep<'_, T> {
    /// Drops the levels inside it, each from the level around it.
    fn drop(&mut self) {
        let level = replace(&mut self.0, Box::pin(pending()));
        stacker::maybe_grow(ROOM, MORE, || drop(level));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;
    use tokio::task::yield_now;

    /// More than fit on a test's stack.
    const LEVELS: u32 = 20_000;

    fn nested(levels: u32) -> Deep<'static, u32> {
        Deep::new(async move {
            match levels.checked_sub(1) {
                Some(inside) => nested(inside).await + 1,
                None => {
                    yield_now().await;
                    0
                }
            }
        })
    }

    #[test]
    fn levels_have_room_to_run_and_to_be_dropped() {
        let mut context = Context::from_waker(Waker::noop());
        let mut levels = nested(LEVELS);
        assert_eq!(Pin::new(&mut levels).poll(&mut context), Poll::Pending);
        assert_eq!(Pin::new(&mut levels).poll(&mut context), Poll::Ready(LEVELS));
        let mut dropped = nested(LEVELS);
        assert_eq!(Pin::new(&mut dropped).poll(&mut context), Poll::Pending);
        drop(dropped);
    }
}
