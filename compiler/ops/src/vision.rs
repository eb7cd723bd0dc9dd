//! Operators of `R.vision`, for object detection.

mod compute;
pub(crate) mod multibox;
pub(crate) mod nms;
pub(crate) mod roi;
