//! How long it takes to read and translate usual texts: `cargo bench -p tsql`.

use std::hint::black_box;
use std::time::Instant;
use tsql::program::Settings;

const ROUNDS: u32 = 5;
const TIMES: u32 = 400;

fn texts() -> Vec<(&'static str, String)> {
    let columns: Vec<String> = (1..=200).map(|number| format!("current_{number}")).collect();
    let batch: Vec<String> = (1..=20)
        .map(|number| format!("update t set a = a + {number}, b = 'x{number}' where k = {number}"))
        .collect();
    vec![
        ("select by key", "select seq_no, current_1, time from sr_mag_ps where seq_no = 17".into()),
        (
            "join",
            "select a.seq_no, a.time, b.pressure from sr_mag_ps a join sr_vac b on a.seq_no = b.seq_no \
             where a.time >= '2026-11-20' and b.pressure > 1e-7 order by a.time desc"
                .into(),
        ),
        ("200 columns", format!("select {} from sr_mag_ps where seq_no = 17", columns.join(", "))),
        ("batch of 20 statements", batch.join("\n")),
        (
            "procedure of 20 changes",
            format!(
                "create procedure p @k int as begin try begin transaction {} commit end try \
                 begin catch if @@trancount > 0 rollback return -1 end catch return 0",
                batch.join("\n")
            ),
        ),
    ]
}

fn main() {
    let settings = Settings { quoted_identifiers: true, ..Settings::default() };
    for (name, text) in texts() {
        let round = |_| {
            let start = Instant::now();
            for _ in 0..TIMES {
                black_box(tsql::compile(black_box(&text), &settings)).unwrap();
            }
            start.elapsed() / TIMES
        };
        // the shortest of several rounds: other programs run too
        let shortest = (0..ROUNDS).map(round).min().unwrap_or_default();
        println!("{name:24} {:8.1} µs", shortest.as_secs_f64() * 1e6);
    }
}
