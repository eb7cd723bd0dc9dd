//! The names of TVM's passes that rx does not implement, so that an error message can tell a misspelled pass from a
//! missing one.
//!
//! The list covers `tvm.relax.transform` and the other modules whose passes `tvm.transform.Sequential` accepts, as of
//! TVM 0.25 to 0.27, and `tvm.tir.transform` of earlier releases.

/// Pairs of a Python module and the names of its passes that rx lacks, separated by spaces.
const PASSES: &[(&str, &str)] = &[
    ("tvm.transform", "ApplyPassToFunction PrintIR Sequential"),
    (
        "tvm.relax.transform",
        "AdjustMatmulOrder AllocateWorkspace AlterOpImpl AttachAttrLayoutFreeBuffers AttachExternModules \
         AttachGlobalSymbol BundleModelParams ComputePrimValue ConvertToDataflow DataflowUseInplaceCalls \
         ExpandMatmulOfSum FastMathTransform FoldBatchnormToConv2D FuseOpsByPattern FuseTransposeMatmul Gradient \
         IPCAllReduceRewrite LambdaLift LazyGetInput LazySetOutput LazyTransformParams LowerAllocTensor \
         LowerGPUIPCAllocStorage LowerRuntimeBuiltin MergeCompositeFunctions MetaScheduleApplyDatabase \
         MetaScheduleTuneIRMod MetaScheduleTuneTIR NormalizeGlobalVar OptimizeLayoutTransform RealizeVDevice \
         RemovePurityChecking RemoveUnusedOutputs ReorderPermuteDimsAfterConcat RewriteCUDAGraph \
         RewriteDataflowReshape RunCodegen SpecializePrimFuncBasedOnCallSite SplitCallTIRByPattern \
         SplitLayoutRewritePreproc ToNonDataflow TopologicalSort UpdateParamStructInfo UpdateParamType UpdateVDevice \
         VMBuiltinLower VMShapeLower",
    ),
    ("tvm.relax.backend", "DispatchSampling DispatchSortScan"),
    ("tvm.relax.backend.adreno.transform", "AnnotateCustomMemoryScope FoldVDeviceScopeChange"),
    (
        "tvm.relax.distributed.transform",
        "LegalizeRedistribute LowerDistIR LowerGlobalViewToLocalView PropagateSharding",
    ),
    ("tvm.relax.training", "AppendLoss SetupTrainer"),
    ("tvm.relax.testing.transform", "ApplyEmptyCppMutator"),
    (
        "tvm.tirx.transform",
        "AnnotateEntryFunc BF16ComputeLegalize BF16StorageLegalize BindTarget CommonSubexprElim ConvertSSA \
         FP8ComputeLegalize FP8StorageLegalize Filter FlattenBuffer ForceNarrowIndexToInt32 LowerIntrin LowerTIRx \
         LowerTIRxCleanup LowerTIRxOpaque LowerTVMBuiltin LowerWarpMemory MakePackedAPI NarrowDataType \
         PointerValueTypeRewrite RemapThreadAxis RemoveAssume RemoveNoOp SkipAssert SplitHostDevice StmtSimplify \
         StorageRewrite TilePrimitiveDispatch UnrollLoop VectorizeLoop VerifyMemory VerifySSA",
    ),
    ("tvm.tirx.backend.trn.transform", "LowerTrainiumLayout"),
    (
        "tvm.s_tir.transform",
        "AnnotateIrregularLoop CanonicalizeLoop CompactBufferAllocation ConvertBlocksToOpaque DecorateDeviceScope \
         DefaultGPUSchedule HoistExpression HoistIfThenElse HoistIfThenElseBasic InferFragment InjectDoubleBuffer \
         InjectPTXAsyncCopy InjectPTXLDG32 InjectPermutedLayout InjectSoftwarePipeline InjectVirtualThread \
         InstrumentBoundCheckers InstrumentProfileIntrinsics LiftThreadBinding LoopPartition LowerAsyncDMA \
         LowerAutoCopy LowerCrossThreadReduction LowerInitBlock LowerMatchBuffer LowerOpaqueBlock LowerThreadAllreduce \
         LowerVtcmAlloc ManifestSharedMemoryLocalStage MergeSharedMemoryAllocations \
         PlanAndUpdateBufferAllocationLocation RemoveStoreUndef RemoveWeightLayoutRewriteBlock RenormalizeSplitPattern \
         RewriteUnsafeSelect ThreadSync TransformMmaBufferLayout UnifyThreadBinding UseAssumeToReduceBranches \
         VerifyGPUCode VerifyVTCMLimit",
    ),
    ("tvm.s_tir.backend.adreno.transform", "InjectTextureAlloc TextureFlatten"),
    ("tvm.s_tir.dlight", "ApplyDefaultSchedule ApplyFastTuning"),
    (
        "tvm.tir.transform",
        "AnnotateDeviceRegions CoProcSync CombineContextCall CommonSubexprElimTIR ConvertForLoopsToSerial \
         ExtractPrimFuncConstants InjectCopyIntrin InjectPrefetch InjectRollingBuffer LegalizePackedCalls \
         LiftAttrScope LowerCustomDatatypes LowerDeviceKernelLaunch LowerDeviceStorageAccessInfo MakeUnpackedAPI \
         ReduceBranchingThroughOvercompute Simplify StorageFlatten UnifiedStaticMemoryPlanner",
    ),
];

/// Returns the Python module of TVM that has the pass `name`, which may be qualified, if rx does not implement the
/// pass; `None` for all other names. Only the last component of `name` is compared. For example, the result is
/// `tvm.relax.transform` for `LambdaLift` and for `relax.transform.LambdaLift`.
pub fn namespace_of(name: &str) -> Option<&'static str> {
    let own = name.rsplit('.').next().unwrap_or(name);
    PASSES.iter().find(|(_, passes)| passes.split_whitespace().any(|pass| pass == own)).map(|(namespace, _)| *namespace)
}

/// Returns all names in the list, without their modules.
pub fn names() -> impl Iterator<Item = &'static str> {
    PASSES.iter().flat_map(|(_, passes)| passes.split_whitespace())
}

#[cfg(test)]
mod tests {
    use super::{names, namespace_of};
    use crate::pass::{find, parse};

    #[test]
    fn pass_of_tvm_that_rx_lacks_is_said_to_be_so() {
        let message = |text: &str| parse(text).err().map(|error| error.0).unwrap_or_default();
        for (text, own, namespace) in [
            ("MetaScheduleTuneIRMod", "MetaScheduleTuneIRMod", "tvm.relax.transform"),
            ("relax.transform.VMShapeLower()", "VMShapeLower", "tvm.relax.transform"),
            ("tvm.relax.transform.LambdaLift", "LambdaLift", "tvm.relax.transform"),
            ("tirx.transform.UnrollLoop", "UnrollLoop", "tvm.tirx.transform"),
            ("tir.transform.Simplify", "Simplify", "tvm.tir.transform"),
            ("DispatchSortScan", "DispatchSortScan", "tvm.relax.backend"),
        ] {
            let wanted = format!("TVM has the pass `{own}` (`{namespace}.{own}`), and rx does not");
            assert!(message(text).starts_with(&wanted), "{}", message(text));
        }
        assert_eq!(message("LambdaLft"), "there is no pass `LambdaLft`; TVM has `LambdaLift`, which rx does not have");
        assert_eq!(message("Nonsense"), "there is no pass `Nonsense`");
    }

    #[test]
    fn no_pass_of_rx_is_listed() {
        assert_eq!(names().find(|name| find(name).is_some()), None);
        assert_eq!(namespace_of("FoldConstant"), None);
    }
}
