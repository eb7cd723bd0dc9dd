//! Struct-info rules of convolutions, for any number of spatial axes and any layout.

use super::conv_advice;
use super::window::{Window, data_letters, hint_idle_dilation, padding, per_axis, spatial_letters};
use crate::call::{CallInfo, ParamPlace, Problem, operand};
use crate::layout::{Layout, laid_out_dims, layout_attr};
use crate::operands::{Element, computed_from, joined_element, joined_vdevice, rank_like, tensor_type};
use rx_base::{Answer, Code, Dim};
use rx_ir::{Shape, StructInfo};

/// The direction of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Forward: each output gathers several inputs.
    Forward,
    /// Transposed: each input contributes to several outputs.
    Transposed,
}

/// The layouts and groups of a call, and the plain extents of its operands.
pub(crate) struct Convolution {
    /// The direction.
    pub direction: Direction,
    /// The number of channel groups.
    pub groups: i64,
    /// The layout of the data.
    pub data_layout: Layout,
    /// The layout of the weight.
    pub kernel_layout: Layout,
    /// N, C and the spatial extents of the data.
    pub data: Vec<Dim>,
    /// O, I and the spatial extents of the kernel, in this order for all kernel layouts.
    pub kernel: Vec<Dim>,
}

/// Returns the letters of [`Convolution::kernel`], which are also those of the default kernel layout.
pub(crate) const fn kernel_letters(rank: usize) -> &'static str {
    match rank {
        1 => "OIW",
        2 => "OIHW",
        _ => "OIDHW",
    }
}

/// Returns the letters of the default kernel layout of a transposed convolution.
pub(crate) const fn transposed_kernel_letters(rank: usize) -> &'static str {
    match rank {
        1 => "IOW",
        2 => "IOHW",
        _ => "IODHW",
    }
}

/// Infers the type of `conv1d`, `conv2d`, `conv3d` (TVM `InferTypeConv2d`).
pub(crate) fn conv<const RANK: usize>(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    infer(call, RANK, Direction::Forward)
}

/// Infers the type of the transposed convolutions (TVM `InferTypeConv2dTranspose`).
pub(crate) fn conv_transpose<const RANK: usize>(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    infer(call, RANK, Direction::Transposed)
}

fn infer(call: &CallInfo<'_>, rank: usize, direction: Direction) -> Result<StructInfo, Problem> {
    let (data, weight) = (call.tensor("data")?, call.tensor("weight")?);
    let letters = data_letters(rank);
    let spatial = spatial_letters(rank);
    let Attributes { steps, data_layout, kernel_layout, out_layout } = Attributes::read(call, rank, direction)?;
    let data_dims = laid_out_dims(call, "data", &data_layout)?;
    let weight_dims = laid_out_dims(call, "weight", &kernel_layout)?;
    let element = match call.dtype("out_dtype") {
        Some(dtype) => Element::known(Some(dtype)),
        None => joined_element(call, "data", "weight")?,
    };
    let vdevice = joined_vdevice(call, "data", "weight")?;
    let (Some(data_dims), Some(weight_dims)) = (data_dims, weight_dims) else {
        let unknown = if data.shape.dims().is_none() { &data.shape } else { &weight.shape };
        return Ok(tensor_type(rank_like(unknown, Some(out_layout.ndim())), element, vdevice));
    };
    let call_data = Convolution {
        direction,
        groups: steps.groups,
        data: data_layout.plain(data_dims, letters),
        kernel: kernel_layout.plain(weight_dims, kernel_letters(rank)),
        data_layout,
        kernel_layout,
    };
    let extents = call_data.output_extents(call, &steps, spatial)?;
    call_data.derive(call, &steps, spatial, &extents, &out_layout);
    let shape = computed_from(&[data, weight], Shape::known(out_layout.physical(letters, &extents)));
    Ok(tensor_type(shape, element, vdevice))
}

/// The attributes of a convolution call.
pub(crate) struct Attributes {
    /// Strides, padding, dilation and groups.
    pub steps: Steps,
    /// The layout of the data.
    pub data_layout: Layout,
    /// The layout of the weight.
    pub kernel_layout: Layout,
    /// The layout of the result.
    pub out_layout: Layout,
}

impl Attributes {
    /// Reads the attributes of `call`.
    ///
    /// # Errors
    /// Reports values out of range, lists of wrong length, and layouts with other letters.
    pub(crate) fn read(call: &CallInfo<'_>, rank: usize, direction: Direction) -> Result<Attributes, Problem> {
        let letters = data_letters(rank);
        // Help texts list the letters in the order of the default layout.
        let kernel_letters = match direction {
            Direction::Forward => kernel_letters(rank),
            Direction::Transposed => transposed_kernel_letters(rank),
        };
        let steps = Steps::read(call, rank, direction)?;
        let data_layout = layout_attr(call, "data_layout", letters, None)?;
        let kernel_layout = layout_attr(call, "kernel_layout", kernel_letters, None)?;
        let out_layout = layout_attr(call, "out_layout", letters, Some(&data_layout))?;
        Ok(Attributes { steps, data_layout, kernel_layout, out_layout })
    }
}

/// The attributes with one value per spatial axis, and the number of groups.
pub(crate) struct Steps {
    /// The strides.
    pub strides: Vec<i64>,
    /// The padding before and after each axis.
    pub padding: Vec<(i64, i64)>,
    /// The dilation: the distance between kernel taps.
    pub dilation: Vec<i64>,
    /// The output padding; zeros for a forward convolution.
    output_padding: Vec<i64>,
    /// The number of channel groups.
    pub groups: i64,
}

impl Steps {
    fn read(call: &CallInfo<'_>, rank: usize, direction: Direction) -> Result<Steps, Problem> {
        let padding = padding(call, rank)?;
        let strides = per_axis(call, "strides", rank, 1)?;
        let dilation = per_axis(call, "dilation", rank, 1)?;
        let output_padding = match direction {
            Direction::Forward => vec![0; rank],
            Direction::Transposed => per_axis(call, "output_padding", rank, 0)?,
        };
        let groups = call.needed_int("groups")?;
        if groups < 1 {
            let message = format_args!("groups must be at least 1, it is {groups}");
            return Err(call.error(Code::AttrOutOfRange, ParamPlace::Param("groups"), message).into());
        }
        Ok(Steps { strides, padding, dilation, output_padding, groups })
    }
}

impl Convolution {
    /// Returns the data's extent along C.
    pub(crate) fn in_channels(&self) -> &Dim {
        self.data.get(1).unwrap_or(&Dim::ERROR)
    }

    /// Returns the kernel's extent along O.
    pub(crate) fn kernel_out(&self) -> &Dim {
        self.kernel.first().unwrap_or(&Dim::ERROR)
    }

    /// Returns the kernel's extent along I.
    pub(crate) fn kernel_in(&self) -> &Dim {
        self.kernel.get(1).unwrap_or(&Dim::ERROR)
    }

    /// Returns the number of input channels that a kernel with this extent along I requires.
    pub(crate) fn expected_channels(&self, kernel_in: &Dim) -> Dim {
        match self.direction {
            Direction::Forward => kernel_in * &Dim::constant(self.groups),
            Direction::Transposed => kernel_in.clone(),
        }
    }

    /// Returns N, C and the spatial extents of the output.
    ///
    /// # Errors
    /// Reports channels that do not fit, and an output without elements.
    pub(crate) fn output_extents(
        &self,
        call: &CallInfo<'_>,
        steps: &Steps,
        spatial: &str,
    ) -> Result<Vec<Dim>, Problem> {
        if call.equal(self.in_channels(), &self.expected_channels(self.kernel_in())) == Answer::Refuted {
            return Err(call.problem(|| conv_advice::channels_report(call, self)));
        }
        let divided = match self.direction {
            Direction::Forward => self.kernel_out(),
            Direction::Transposed => self.kernel_in(),
        };
        let groups = Dim::constant(self.groups);
        if call.equal(&divided.floor_mod(&groups), &Dim::constant(0)) == Answer::Refuted {
            return Err(call.problem(|| conv_advice::groups_report(call, self, divided)));
        }
        let out_channels = match self.direction {
            Direction::Forward => self.kernel_out().clone(),
            Direction::Transposed => self.kernel_out() * &groups,
        };
        let mut extents = vec![self.data.first().unwrap_or(&Dim::ERROR).clone(), out_channels];
        let windows = self.windows(steps, spatial);
        hint_idle_dilation(call, &windows);
        for (window, output_padding) in windows.iter().zip(&steps.output_padding) {
            extents.push(match self.direction {
                Direction::Forward => forward_extent(call, window)?,
                Direction::Transposed => transposed_extent(call, window, *output_padding)?,
            });
        }
        Ok(extents)
    }

    /// Reports the formulas of the output's extents, if formulas are collected.
    fn derive(&self, call: &CallInfo<'_>, steps: &Steps, spatial: &str, extents: &[Dim], out_layout: &Layout) {
        if call.derivations.is_none() {
            return;
        }
        let windows = self.windows(steps, spatial);
        if let (Direction::Transposed, Some(channels), 2..) = (self.direction, extents.get(1), self.groups) {
            let out = self.kernel_out();
            call.derive(out_layout.axis_of('C'), || {
                format!("O*groups = {}*{} = {channels}", operand(out), self.groups)
            });
        }
        for ((window, output_padding), extent) in windows.iter().zip(&steps.output_padding).zip(extents.iter().skip(2))
        {
            call.derive(out_layout.axis_of(window.letter), || match self.direction {
                Direction::Forward => format!("{} = {extent}", window.formula()),
                Direction::Transposed => format!("{} = {extent}", transposed_formula(window, *output_padding)),
            });
        }
    }

    fn windows(&self, steps: &Steps, spatial: &str) -> Vec<Window> {
        let inputs = self.data.iter().skip(2).zip(self.kernel.iter().skip(2));
        let steps = steps.strides.iter().zip(&steps.dilation).zip(&steps.padding);
        let axes = spatial.chars().zip(inputs).zip(steps);
        axes.map(|((letter, (input, kernel)), ((stride, dilation), padding))| Window {
            letter,
            input: input.clone(),
            kernel: kernel.clone(),
            padding: *padding,
            stride: *stride,
            dilation: *dilation,
        })
        .collect()
    }
}

fn forward_extent(call: &CallInfo<'_>, window: &Window) -> Result<Dim, Problem> {
    let extent = window.floor_extent();
    match Window::is_empty(call, &extent) {
        true => Err(window.empty_report(call, &extent, "weight")),
        false => Ok(extent),
    }
}

/// Prints the formula of [`transposed_extent`] with the values filled in.
fn transposed_formula(window: &Window, output_padding: i64) -> String {
    let Window { input, kernel, padding: (before, after), stride, dilation, .. } = window;
    let (input, kernel) = (operand(input), operand(kernel));
    format!("({input} - 1)*{stride} - {before} - {after} + {dilation}*({kernel} - 1) + {output_padding} + 1")
}

/// Returns `(input - 1) * stride - padding + dilation * (kernel - 1) + output_padding + 1`.
fn transposed_extent(call: &CallInfo<'_>, window: &Window, output_padding: i64) -> Result<Dim, Problem> {
    let Window { letter, input, kernel, padding: (before, after), stride, dilation } = window;
    if output_padding >= *stride {
        let message = format_args!(
            "output_padding {output_padding} along {letter} must be smaller than the stride, which is {stride}"
        );
        return Err(call
            .error(Code::ConvOutputPaddingTooLarge, ParamPlace::Param("output_padding"), message)
            .with_label(ParamPlace::Param("strides"), format!("the stride along {letter} is {stride}"))
            .with_help("output_padding only chooses among the extents that one stride makes alike")
            .into());
    }
    let one = Dim::constant(1);
    let spread = &(input - &one) * &Dim::constant(*stride);
    let kernel_reach = &Dim::constant(*dilation) * &(kernel - &one);
    let cut = &Dim::constant(*before) + &Dim::constant(*after);
    let extent = &(&(&(&spread - &cut) + &kernel_reach) + &Dim::constant(output_padding)) + &one;
    if Window::is_empty(call, &extent) {
        let formula = format!("{} = {extent}", transposed_formula(window, output_padding));
        let message = format_args!("the output is empty: its {letter} extent would be {extent}");
        return Err(call
            .error(Code::ConvEmptyOutput, ParamPlace::Param("data"), message)
            .with_primary_label(format!("{}: the {letter} extent is {input}", call.ty("data")))
            .with_label(ParamPlace::Param("weight"), format!("the kernel's {letter} extent is {kernel}"))
            .with_note(formula)
            .with_help("padding cuts the output; a smaller padding leaves some")
            .into());
    }
    Ok(extent)
}
