//! Attention in one kernel: `softmax(score(queries · keys)) · values`, whose scores never reach memory.
//!
//! The statements are known by what they compute ([`problem`], [`reading`]), so any score will do: scaled, biased, masked, by
//! sequences; grouped heads, which share their keys; and softmaxes that are safe of rows without keys ([`safe`]). A block has some rows of queries and goes over the keys by tiles
//! ([`kernel`], [`bring`], [`places`]), on tensor cores where all factors have 16 bits ([`warps`]), else by threads
//! ([`threads`]); [`scores`] of both. Where few rows share many keys, blocks share the keys of a row, and a second kernel joins what they made
//! ([`join`]). [`tiles`] says which. Keys that a mask keeps from all rows of a block are left out ([`mask`]).
//!
//! Sums are of `float32` whatever the dtypes of the buffers between are, and scores are not rounded on the way to their
//! exponentials but where the program's own casts say so: results are nearer to the exact ones than those of the loops.
//!
//! Exported models contain attention as several statements. `rx-lower` joins those into one function if `makes_one` says
//! that one schedule takes all of it and keeps the values between its statements.

mod bring;
mod join;
mod kernel;
mod mask;
mod places;
mod problem;
mod reading;
mod safe;
mod scores;
mod template;
mod threads;
mod tiles;
mod warps;

use super::{Declined, Rule, Schedule, Scratch, Task};
use join::Join;
use kernel::Attend;
use problem::Problem;
use std::rc::Rc;

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "attention",
    summary: "Products, their softmax and the sums weighted by it in one kernel, which keeps the scores in registers.",
    take,
};

fn take(task: &Task<'_>) -> Result<Schedule, Declined> {
    let problem = Rc::new(Problem::of(task)?);
    let mut tiling = tiles::choose(&problem, task.target)?;
    let attend = loop {
        let attend = Attend::new(Rc::clone(&problem), tiling).map_err(Declined)?;
        if attend.shared_bytes <= task.target.shared_bytes() - attend.declared_bytes() {
            break attend;
        }
        let smaller = tiling.smaller();
        tiling = smaller.ok_or_else(|| Declined::because("its tiles are too large for shared memory"))?;
    };
    let note = format!("{}; {}", tiling.note(), attend.note());
    let mut schedule = Schedule { note, ..Schedule::single(problem.statements.len(), attend) };
    if let Some(part) = tiling.part {
        let join = Join { problem: Rc::clone(&problem), part };
        schedule.scratch.push(Scratch { name: "partial", bytes: join.bytes() });
        schedule.kernels.push(Box::new(join));
    }
    Ok(schedule)
}
