-- Names of deepc beside those of PyTorch, JAX and Torch7: tensors and typed functions (names.lua reads it).

return [[
# Making tensors
dc.tensor | torch.tensor | jnp.array | torch.Tensor
dc.frombytes | torch.frombuffer | jnp.frombuffer | -
dc.zeros | torch.zeros, torch.zeros_like, torch.empty | jnp.zeros, jnp.zeros_like | torch.zeros | a tensor in the place of the type: `dc.zeros(x)`
dc.ones | torch.ones, torch.ones_like | jnp.ones, jnp.ones_like | torch.ones
dc.full | torch.full, torch.full_like | jnp.full, jnp.full_like | torch.Tensor.fill
dc.iota | torch.arange | jax.lax.iota | torch.range | counts along an axis of a type
dc.arange | torch.arange | jnp.arange | torch.range | without its end, which `torch.range` gives, too
dc.linspace, dc.logspace | torch.linspace, torch.logspace | jnp.linspace, jnp.logspace | torch.linspace, torch.logspace
dc.eye | torch.eye | jnp.eye | torch.eye
dc.meshgrid | torch.meshgrid | jnp.meshgrid | - | `jnp.meshgrid` is `{ indexing = "xy" }` of ours
x:vander | torch.vander | jnp.vander | -

# Random numbers
dc.rand | torch.rand | jax.random.uniform | torch.rand
dc.randn | torch.randn | jax.random.normal | torch.randn
dc.randint | torch.randint | jax.random.randint | torch.random
dc.bernoulli | torch.bernoulli | jax.random.bernoulli | torch.bernoulli
dc.generator | torch.Generator | jax.random.key | torch.Generator
dc.seed | torch.manual_seed | jax.random.key | torch.manualSeed

# Values out of tensors, memory
x:item | torch.Tensor.item | jax.Array.item | - | one element is `x[i]` in Torch7
x:totable | torch.Tensor.tolist | jax.Array.tolist | torch.totable
x:bytes | torch.Tensor.numpy | jax.Array.tobytes | torch.Tensor.storage
x:size | torch.Tensor.size | jnp.size | torch.Tensor.size
x:to, x:move | torch.Tensor.to | jax.device_put | torch.Tensor.cuda | `x:move` takes a parameter, which stays itself
x:clone | torch.clone | jnp.copy | torch.Tensor.clone
x:close, dc.scope, s:keep, s:close | - | jax.Array.delete | - | memory given back at once

# Shape
x:reshape | torch.reshape, torch.Tensor.view, torch.unsqueeze, torch.squeeze | jnp.reshape, jnp.expand_dims, jnp.squeeze | torch.reshape, torch.Tensor.view, torch.squeeze
x:flatten | torch.flatten | jnp.ravel | torch.Tensor.view
x:transpose | torch.transpose | jnp.swapaxes | torch.Tensor.transpose
x:permute | torch.permute | jnp.permute_dims, jnp.transpose | torch.Tensor.permute
x:expand | torch.Tensor.expand, torch.broadcast_to | jnp.broadcast_to | torch.Tensor.expand
x:slice | torch.narrow | jax.lax.slice | torch.Tensor.narrow, torch.Tensor.sub
x:put | torch.index_put | jax.Array.at | torch.Tensor.indexCopy | a new tensor: `x:put({ 1 }, v)` for `x[0] = v`
x:cast | torch.Tensor.type, torch.Tensor.to | jax.Array.astype | torch.Tensor.type
x:rename | - | - | - | names of dims
x:pad | torch.nn.functional.pad | jnp.pad | nn.Padding
x:flip, x:roll | torch.flip, torch.roll | jnp.flip, jnp.roll | -
x:split | torch.chunk | jnp.split | torch.chunk | a number is how many parts; of `torch.split(x, 2)` it is their size
dc.concat, dc.stack | torch.cat, torch.stack | jnp.concatenate, jnp.stack | torch.cat, -
x:diag, x:diagonal, x:trace | torch.diag, torch.diagonal, torch.trace | jnp.diag, jnp.diagonal, jnp.trace | torch.diag, -, torch.trace
x:tile | torch.tile, torch.Tensor.repeat | jnp.tile | torch.repeatTensor
x:repeat_interleave | torch.repeat_interleave | jnp.repeat | -
x:movedim, x:rot90 | torch.movedim, torch.rot90 | jnp.moveaxis, jnp.rot90 | -
x:unfold | torch.Tensor.unfold | - | torch.Tensor.unfold
x:tril, x:triu | torch.tril, torch.triu | jnp.tril, jnp.triu | torch.tril, torch.triu

# Arithmetic
x:add, x:sub, x:mul, x:div | torch.add, torch.sub, torch.mul, torch.div | jnp.add, jnp.subtract, jnp.multiply, jnp.divide | torch.add, torch.csub, torch.cmul, torch.cdiv | also `+ - * /`
x:floor_div, x:mod, x:rem | torch.floor_divide, torch.remainder, torch.fmod | jnp.floor_divide, jnp.remainder, jnp.fmod | -, torch.remainder, torch.fmod | also `//` and `%`
x:integer_pow | - | jax.lax.integer_pow | - | of integers, tensors as exponents; wraps
x:pow, x:neg | torch.pow, torch.neg | jnp.power, jnp.negative | torch.pow, torch.neg | also `^` and `-`
x:abs, x:sign, x:square | torch.abs, torch.sign, torch.square | jnp.abs, jnp.sign, jnp.square | torch.abs, torch.sign, torch.square
x:floor, x:ceil, x:trunc, x:round, x:frac | torch.floor, torch.ceil, torch.trunc, torch.round, torch.frac | jnp.floor, jnp.ceil, jnp.trunc, jnp.round, - | torch.floor, torch.ceil, torch.trunc, torch.round, torch.frac
x:maximum, x:minimum | torch.maximum, torch.minimum | jnp.maximum, jnp.minimum | torch.cmax, torch.cmin
x:clamp | torch.clamp | jnp.clip | torch.clamp
x:gcd, x:lcm | torch.gcd, torch.lcm | jnp.gcd, jnp.lcm | -
x:lerp | torch.lerp | optax.incremental_update | torch.lerp
x:nan_to_num | torch.nan_to_num | jnp.nan_to_num | -

# Bits
x:bit_and, x:bit_or, x:bit_xor, x:bit_not | torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor, torch.bitwise_not | jnp.bitwise_and, jnp.bitwise_or, jnp.bitwise_xor, jnp.bitwise_not | torch.bitand, torch.bitor, torch.bitxor, -
x:shift_left, x:shift_right | torch.bitwise_left_shift, torch.bitwise_right_shift | jnp.left_shift, jnp.right_shift | torch.lshift, torch.rshift
x:bitcast | torch.Tensor.view | jax.lax.bitcast_convert_type | - | of another dtype that is as wide; NumPy: `x.view`
x:popcount, x:clz | -, - | jnp.bitwise_count, jax.lax.clz | -
x:dp4a, x:half_float | - | - | - | products of bytes; the f16 in 16 bits

# Functions
x:exp, x:exp2, x:expm1 | torch.exp, torch.exp2, torch.expm1 | jnp.exp, jnp.exp2, jnp.expm1 | torch.exp, -, -
x:log, x:log2, x:log10, x:log1p | torch.log, torch.log2, torch.log10, torch.log1p | jnp.log, jnp.log2, jnp.log10, jnp.log1p | torch.log, -, -, torch.log1p
x:sqrt, x:rsqrt, x:cbrt, x:reciprocal | torch.sqrt, torch.rsqrt, -, torch.reciprocal | jnp.sqrt, jax.lax.rsqrt, jnp.cbrt, jnp.reciprocal | torch.sqrt, torch.rsqrt, -, torch.cinv
x:sin, x:cos, x:tan | torch.sin, torch.cos, torch.tan | jnp.sin, jnp.cos, jnp.tan | torch.sin, torch.cos, torch.tan
x:asin, x:acos, x:atan, x:atan2 | torch.asin, torch.acos, torch.atan, torch.atan2 | jnp.asin, jnp.acos, jnp.atan, jnp.atan2 | torch.asin, torch.acos, torch.atan, torch.atan2
x:sinh, x:cosh, x:tanh | torch.sinh, torch.cosh, torch.tanh | jnp.sinh, jnp.cosh, jnp.tanh | torch.sinh, torch.cosh, torch.tanh
x:asinh, x:acosh, x:atanh | torch.asinh, torch.acosh, torch.atanh | jnp.asinh, jnp.acosh, jnp.atanh | -
x:erf, x:erfc, x:erf_inv | torch.erf, torch.erfc, torch.erfinv | jsp.special.erf, jsp.special.erfc, jsp.special.erfinv | -
x:lgamma, x:digamma | torch.lgamma, torch.digamma | jsp.special.gammaln, jsp.special.digamma | -
x:sinc, x:logit | torch.sinc, torch.logit | jnp.sinc, jsp.special.logit | -
x:deg2rad, x:rad2deg | torch.deg2rad, torch.rad2deg | jnp.deg2rad, jnp.rad2deg | -
x:copysign, x:hypot, x:heaviside | torch.copysign, torch.hypot, torch.heaviside | jnp.copysign, jnp.hypot, jnp.heaviside | -
x:logaddexp, x:logaddexp2, x:xlogy | torch.logaddexp, torch.logaddexp2, torch.xlogy | jnp.logaddexp, jnp.logaddexp2, jsp.special.xlogy | -
x:sigmoid | torch.sigmoid, torch.nn.functional.sigmoid | jax.nn.sigmoid | torch.sigmoid
x:relu | torch.relu, torch.nn.functional.relu | jax.nn.relu | -
x:silu, x:softplus, x:gelu | torch.nn.functional.silu, torch.nn.functional.softplus, torch.nn.functional.gelu | jax.nn.silu, jax.nn.softplus, jax.nn.gelu | - | `jax.nn.gelu` is `{ approximate = "tanh" }` of ours

# Comparisons and choice
x:eq, x:ne, x:lt, x:le, x:gt, x:ge | torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge | jnp.equal, jnp.not_equal, jnp.less, jnp.less_equal, jnp.greater, jnp.greater_equal | torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge | methods alone: Lua's `<` gives no tensor
dc.where | torch.where | jnp.where | - | all three are tensors or numbers
x:isnan, x:isinf, x:isfinite | torch.isnan, torch.isinf, torch.isfinite | jnp.isnan, jnp.isinf, jnp.isfinite | -
x:isclose, x:allclose | torch.isclose, torch.allclose | jnp.isclose, jnp.allclose | -
x:logical_and, x:logical_or, x:logical_xor, x:logical_not | torch.logical_and, torch.logical_or, torch.logical_xor, torch.logical_not | jnp.logical_and, jnp.logical_or, jnp.logical_xor, jnp.logical_not | -

# Reductions
x:sum, x:mean, x:prod | torch.sum, torch.mean, torch.prod | jnp.sum, jnp.mean, jnp.prod | torch.sum, torch.mean, torch.prod
x:max, x:min | torch.amax, torch.amin | jnp.max, jnp.min | torch.max, torch.min | values alone; places are `x:argmax`
x:all, x:any | torch.all, torch.any | jnp.all, jnp.any | torch.all, torch.any
x:var, x:std | torch.var, torch.std | jnp.var, jnp.std | torch.var, torch.std | divided by n, as in NumPy and JAX; PyTorch and Torch7 divide by n - 1
x:norm | torch.norm | jnp.linalg.norm | torch.norm
x:logsumexp | torch.logsumexp | jax.nn.logsumexp | -
x:nansum, x:nanmean | torch.nansum, torch.nanmean | jnp.nansum, jnp.nanmean | -
x:nanprod, x:nanmax, x:nanmin, x:nanvar, x:nanstd | - | jnp.nanprod, jnp.nanmax, jnp.nanmin, jnp.nanvar, jnp.nanstd | -
x:count_nonzero | torch.count_nonzero | jnp.count_nonzero | -
x:cumsum, x:cumprod | torch.cumsum, torch.cumprod | jnp.cumsum, jnp.cumprod | torch.cumsum, torch.cumprod
x:cummax, x:cummin, x:logcumsumexp | torch.cummax, torch.cummin, torch.logcumsumexp | jax.lax.cummax, jax.lax.cummin, jax.lax.cumlogsumexp | -
x:argmax, x:argmin | torch.argmax, torch.argmin | jnp.argmax, jnp.argmin | - | count from 0; in Torch7 the second result of `torch.max`, from 1
x:softmax | torch.softmax, torch.nn.functional.softmax | jax.nn.softmax | -
x:log_softmax | torch.log_softmax, torch.nn.functional.log_softmax | jax.nn.log_softmax | -

# Products
x:matmul | torch.matmul, torch.mm, torch.bmm, torch.mv | jnp.matmul | torch.mm, torch.bmm, torch.mv
x:dot, x:vdot, x:inner, x:outer | torch.dot, torch.vdot, torch.inner, torch.outer | jnp.dot, jnp.vdot, jnp.inner, jnp.outer | torch.dot, -, -, torch.ger
x:kron, x:cross | torch.kron, torch.linalg.cross | jnp.kron, jnp.cross | -, torch.cross
dc.einsum | torch.einsum | jnp.einsum | - | axes are words: `"b h t d, b h s d -> b h t s"`
dc.cdist | torch.cdist | - | -

# Convolutions and pools
dc.conv1d, dc.conv2d, dc.conv3d | torch.nn.functional.conv1d, torch.nn.functional.conv2d, torch.nn.functional.conv3d | jax.lax.conv_general_dilated | -, torch.xcorr2, torch.xcorr3 | the kernel is not turned round, as `torch.conv2` of Torch7 does
dc.conv_transpose1d, dc.conv_transpose2d, dc.conv_transpose3d | torch.nn.functional.conv_transpose1d, torch.nn.functional.conv_transpose2d, torch.nn.functional.conv_transpose3d | jax.lax.conv_transpose | -
dc.max_pool1d, dc.max_pool2d, dc.max_pool3d | torch.nn.functional.max_pool1d, torch.nn.functional.max_pool2d, torch.nn.functional.max_pool3d | nnx.max_pool, jax.lax.reduce_window | nn.TemporalMaxPooling, nn.SpatialMaxPooling, nn.VolumetricMaxPooling
dc.avg_pool1d, dc.avg_pool2d, dc.avg_pool3d | torch.nn.functional.avg_pool1d, torch.nn.functional.avg_pool2d, torch.nn.functional.avg_pool3d | nnx.avg_pool, jax.lax.reduce_window | -, nn.SpatialAveragePooling, nn.VolumetricAveragePooling

# Order
x:sort, x:argsort | torch.sort, torch.argsort | jnp.sort, jnp.argsort | torch.sort, - | `x:sort` gives values alone; places count from 0
x:top_k | torch.topk | jax.lax.top_k | torch.topk
x:quantile, x:nanquantile | torch.quantile, torch.nanquantile | jnp.quantile, jnp.nanquantile | -
x:percentile | - | jnp.percentile | -
x:median, x:nanmedian | torch.median, torch.nanmedian | jnp.median, jnp.nanmedian | torch.median, - | of an even number the mean of both, as NumPy; PyTorch takes the lower one
x:kthvalue, x:mode | torch.kthvalue, torch.mode | jnp.partition, jsp.stats.mode | torch.kthvalue, torch.mode
x:unique | torch.unique | jnp.unique | -

# Indexing with data
x:take | torch.index_select | jnp.take | torch.Tensor.index | positions count from 0
x:one_hot | torch.nn.functional.one_hot | jax.nn.one_hot | -
x:gather | torch.gather | jnp.take_along_axis | torch.gather
x:scatter | torch.scatter | jnp.put_along_axis | torch.Tensor.scatter
x:scatter_add | torch.scatter_add | jax.lax.scatter_add | -
x:index_add, x:index_copy, x:index_fill, x:index_reduce | torch.index_add, torch.index_copy, torch.index_fill, torch.index_reduce | jax.Array.at | torch.Tensor.indexAdd, torch.Tensor.indexCopy, torch.Tensor.indexFill, -
x:take_nd, x:gather_nd, x:put_nd, x:scatter_nd | torch.index_put | jax.lax.gather, jax.lax.gather, jax.lax.scatter, jax.lax.scatter | - | `x[i, j]` with tensors of positions
x:segment_sum, x:segment_mean, x:segment_max, x:segment_min, x:segment_prod | torch.segment_reduce | jax.ops.segment_sum, -, jax.ops.segment_max, jax.ops.segment_min, jax.ops.segment_prod | -
x:compact | torch.masked_select | jnp.compress | torch.maskedSelect | the size of the result is a bound
x:nonzero | torch.nonzero | jnp.nonzero | torch.nonzero
x:bincount, x:histogram | torch.bincount, torch.histogram | jnp.bincount, jnp.histogram | -, torch.histc
x:isin | torch.isin | jnp.isin | -
x:searchsorted, x:bucketize, x:digitize | torch.searchsorted, torch.bucketize, - | jnp.searchsorted, -, jnp.digitize | -
x:interp | - | jnp.interp | -

# Complex numbers
dc.complex, dc.polar | torch.complex, torch.polar | jax.lax.complex, - | -
x:real, x:imag, x:conj, x:angle | torch.real, torch.imag, torch.conj, torch.angle | jnp.real, jnp.imag, jnp.conj, jnp.angle | -
x:view_as_real, x:view_as_complex | torch.view_as_real, torch.view_as_complex | - | -

# Typed functions
dc.fn | torch.compile, torch.jit.script | jax.jit, nnx.jit | - | traced where it is defined, from the types in its signature
f:check | - | jax.eval_shape | - | types without data
f:export | torch.export.export | jax.export.export | - | a file that a host in C runs
f:start, f:ready, Job:poll, Job:result, Job:close | - | - | - | a call in slices; is it compiled
dc.static | - | - | - | `static_argnums` of jax.jit
dc.dim | torch.export.Dim | jax.export.symbolic_shape | -
dc.print | - | jax.debug.print | -
f:info, f:explain, f:report, f:exchanges, f:kernels, f:source, f:plan | -, torch._dynamo.explain, -, -, -, -, - | jax.stages.Compiled.cost_analysis, -, -, -, -, jax.stages.Compiled.as_text, jax.stages.Compiled.memory_analysis | -
f:dot | torch.fx.passes.graph_drawer.FxGraphDrawer | - | -
dc.tune | - | - | - | `mode="max-autotune"` of torch.compile

# Parameters, states, gradients
dc.param | torch.nn.Parameter | nnx.Param | -
dc.state | torch.nn.Buffer | nnx.Variable | -
x:set | torch.Tensor.copy_ | - | torch.Tensor.copy | of parameters and states alone
dc.device | torch.get_default_device | jax.devices | cutorch.getDevice
dc.grad | torch.autograd.grad, torch.Tensor.backward | jax.grad, jax.value_and_grad, nnx.grad, nnx.value_and_grad | nn.Module.backward | of a value, as in PyTorch; `jax.grad` is of a function
x:stop_gradient | torch.Tensor.detach, torch.no_grad | jax.lax.stop_gradient | -
x:watch | torch.Tensor.requires_grad_ | - | - | only to have the gradient of what is computed on the way
dc.custom_grad | torch.autograd.Function | jax.custom_vjp | -
dc.remat | torch.utils.checkpoint.checkpoint | jax.checkpoint, jax.remat | -
dc.autocast | torch.autocast | - | -

# Loops, branches, axes
dc.scan, dc.associative_scan | - | jax.lax.scan, jax.lax.associative_scan | -
dc.map, dc.vmap | -, torch.vmap | jax.lax.map, jax.vmap | -
dc.loop, dc.fori | - | jax.lax.while_loop, jax.lax.fori_loop | -
dc.cond, dc.switch | torch.cond, - | jax.lax.cond, jax.lax.switch | -

# Ranks
dc.world | torch.distributed.init_process_group | jax.process_index | -
dc.mesh | torch.distributed.device_mesh.init_device_mesh | jax.make_mesh | -
dc.shard, dc.reshard, dc.part, dc.whole | torch.distributed.tensor.distribute_tensor, torch.distributed.tensor.DTensor.redistribute, torch.distributed.tensor.DTensor.to_local, torch.distributed.tensor.DTensor.full_tensor | jax.device_put, jax.lax.with_sharding_constraint, -, - | -
dc.all_reduce, dc.reduce_scatter, dc.all_gather, dc.all_to_all, dc.broadcast | torch.distributed.all_reduce, torch.distributed.reduce_scatter_tensor, torch.distributed.all_gather_into_tensor, torch.distributed.all_to_all_single, torch.distributed.broadcast | jax.lax.psum, jax.lax.psum_scatter, jax.lax.all_gather, jax.lax.all_to_all, - | -
dc.send, dc.recv, dc.send_recv | torch.distributed.send, torch.distributed.recv, - | -, -, jax.lax.ppermute | -
dc.barrier | torch.distributed.barrier | - | -

# Files, scripts, looking inside
dc.save, dc.load | torch.save, torch.load | jnp.save, jnp.load | torch.save, torch.load | safetensors, GGUF, PyTorch's files
dc.checkpoint, ckpt:save, ckpt:load | -, torch.save, torch.load | - | -
dc.trace | torch.profiler.profile | jax.profiler.trace | -
dc.span | torch.profiler.record_function | jax.profiler.TraceAnnotation | -
dc.metric | - | - | -
dc.options, dc.fail, dc.progress | - | - | torch.CmdLine, -, xlua.progress
dc.show | - | - | image.display
dc.stats, dc.clock, dc.ops, dc.dtypes | -, -, -, torch.finfo | -, -, -, jax.numpy.finfo | -, sys.clock, -, -
dc.check_numbers | torch.autograd.detect_anomaly | - | - | `jax_debug_nans`
dc.flush_denormals | torch.set_flush_denormal | - | -
]]
