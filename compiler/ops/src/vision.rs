//! `R.vision.*`: detection.

pub(crate) mod multibox;
pub(crate) mod nms;
pub(crate) mod roi;
