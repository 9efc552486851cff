//! Replies that wait to be read, and long requests.

use super::*;
use crate::limits::room::Room;
use crate::limits::shares::{Claimant, Shares};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::io::{duplex, AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::time::{sleep, Instant};

/// A stream whose bytes are all available, which counts the reads.
#[derive(Clone, Default)]
struct Counting(Arc<Mutex<(BytesMut, usize)>>);

impl ClientStream for Counting {
    fn register_here(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ClientStream for DuplexStream {
    fn register_here(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsyncRead for Counting {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let mut state = self.0.lock().unwrap();
        let count = buffer.remaining().min(state.0.len());
        buffer.put_slice(&state.0.split_to(count));
        state.1 += 1;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Counting {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn a_request_as_long_as_the_last_one_is_read_at_once() {
    let mut request = BytesMut::new();
    for last in [0, 0, 0, 1] {
        request.extend_from_slice(&[15, last, 2, 0, 0, 0, 0, 0]);
        request.extend_from_slice(&[7; 504]);
    }
    let stream = Counting::default();
    let mut client = Client::new(Box::new(stream.clone()), 1, 10_000);
    client.set_packet_size(512);
    let mut counts = Vec::new();
    for _ in 0..3 {
        stream.0.lock().unwrap().0.extend_from_slice(&request);
        let before = stream.0.lock().unwrap().1;
        assert_eq!(client.request().await.unwrap().unwrap().body.len(), 4 * 504);
        counts.push(stream.0.lock().unwrap().1 - before);
    }
    assert_eq!(counts, [4, 1, 1]);
}

const HEADER_OF_2000: [u8; 8] = [3, 1, 0x07, 0xD0, 0, 0, 1, 0];

#[tokio::test(start_paused = true)]
async fn a_request_that_stops_half_way_ends_the_session() {
    let (mut theirs, ours) = duplex(4096);
    let mut client = Client::new(Box::new(ours), 1, 10_000);
    theirs.write_all(&HEADER_OF_2000).await.unwrap();
    let start = Instant::now();
    assert!(matches!(client.request().await, Err(SessionError::Stalled)));
    assert_eq!(start.elapsed(), STALLED);
}

#[tokio::test(start_paused = true)]
async fn an_idle_client_and_a_slow_one_may_stay() {
    let (mut theirs, ours) = duplex(4096);
    let mut client = Client::new(Box::new(ours), 1, 10_000);
    let slow = tokio::spawn(async move {
        sleep(STALLED * 100).await;
        theirs.write_all(&HEADER_OF_2000).await.unwrap();
        for _ in 0..1992 {
            sleep(STALLED / 2).await;
            theirs.write_all(&[0]).await.unwrap();
        }
        theirs
    });
    assert_eq!(client.request().await.unwrap().unwrap().body.len(), 1992);
    drop(slow.await.unwrap());
    assert!(client.request().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn who_does_not_read_goes_when_another_waits_for_the_connection_and_is_told_so() {
    let (mut theirs, ours) = duplex(4096);
    let mut client = Client::new(Box::new(ours), 1, 10_000);
    let shares = Shares::new(1, 0);
    let claimant = Claimant { login: "reader".into(), most: 1, has_reserve: false };
    let occupied = Occupied::default();
    let permit = occupied.occupy(shares.try_take(&claimant).unwrap());
    client.admit(10_000, Room::new().slots(&claimant.login), occupied);
    let waiting = tokio::spawn({
        let (shares, claimant) = (shares.clone(), claimant.clone());
        async move { shares.take(&claimant, &Arc::default()).await }
    });
    client.reply.tokens.extend_from_slice(&[0xD1; 100_000]);
    let start = Instant::now();
    let error = client.send_now().await.unwrap_err();
    assert!(matches!(error, SessionError::Unread));
    assert!(start.elapsed() < UNREAD / 10, "{:?}", start.elapsed());
    drop(permit);
    waiting.await.unwrap();

    let farewell = error.farewell().unwrap();
    let reading = tokio::spawn(async move {
        let mut all = Vec::new();
        theirs.read_to_end(&mut all).await.unwrap();
        all
    });
    client.say_farewell(&farewell).await;
    drop(client);
    let message: Vec<u8> = "did not read its results".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let all = reading.await.unwrap();
    assert!(all.windows(message.len()).any(|part| part == message));
}
