-- Names of deepc beside those of PyTorch, JAX (with Flax and Optax) and Torch7: networks and how they are trained
-- (names.lua reads it).

return [[
# Networks
nn.class | torch.nn.Module | nnx.Module | nn.Module
layer:forward | torch.nn.Module.forward | nnx.Module | nn.Module.updateOutput | layers are called: `layer(x)`
layer:describe, layer:summary | torch.nn.Module.extra_repr, - | -, nnx.tabulate | -
layer:parameters, layer:named_parameters | torch.nn.Module.parameters, torch.nn.Module.named_parameters | nnx.state | nn.Module.parameters, -
layer:named_cells | torch.nn.Module.state_dict | nnx.state | -
layer:train, layer:eval | torch.nn.Module.train, torch.nn.Module.eval | nnx.Module.train, nnx.Module.eval | nn.Module.training, nn.Module.evaluate
layer:freeze, layer:unfreeze | torch.nn.Module.requires_grad_ | optax.set_to_zero | -
layer:cast, layer:to, layer:apply | torch.nn.Module.type, torch.nn.Module.to, torch.nn.Module.apply | - | nn.Module.type, nn.Module.cuda, nn.Module.apply
nn.Sequential | torch.nn.Sequential, torch.nn.ModuleList | nnx.Sequential, nnx.List | nn.Sequential | a list of layers in a field is found as well
nn.Residual | - | - | nn.CAddTable | `nn.ConcatTable` and `nn.CAddTable` in Torch7
nn.Parallel | - | - | nn.Concat
nn.Identity | torch.nn.Identity | jax.nn.identity | nn.Identity
nn.Flatten, nn.Unflatten | torch.nn.Flatten, torch.nn.Unflatten | - | nn.View
nn.weight_norm, nn.spectral_norm | torch.nn.utils.parametrizations.weight_norm, torch.nn.utils.parametrizations.spectral_norm | nnx.WeightNorm, nnx.SpectralNorm | nn.WeightNorm, -
nn.quantize, nn.calibrate | torch.ao.quantization.quantize_dynamic, - | - | -
nn.QuantizedLinear, nn.QuantizedEmbedding | torch.ao.nn.quantized.Linear, torch.ao.nn.quantized.Embedding | - | -
nn.QuantizedLinear:dequantize, nn.QuantizedEmbedding:dequantize, nn.QuantizedEmbedding:project | torch.dequantize | - | -

# Layers
nn.Linear, nn.Bilinear | torch.nn.Linear, torch.nn.Bilinear | nnx.Linear, - | nn.Linear, nn.Bilinear
nn.Embedding, nn.EmbeddingBag | torch.nn.Embedding, torch.nn.EmbeddingBag | nnx.Embed, - | nn.LookupTable, - | ids count from 0
nn.Dropout | torch.nn.Dropout, torch.nn.functional.dropout | nnx.Dropout | nn.Dropout
nn.Dropout1d, nn.Dropout2d, nn.Dropout3d | torch.nn.Dropout1d, torch.nn.Dropout2d, torch.nn.Dropout3d | nnx.Dropout | -, nn.SpatialDropout, nn.VolumetricDropout
nn.AlphaDropout | torch.nn.AlphaDropout | - | -
nn.Conv1d, nn.Conv2d, nn.Conv3d | torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d | nnx.Conv | nn.TemporalConvolution, nn.SpatialConvolution, nn.VolumetricConvolution | channels first, as in PyTorch; Flax has them last
nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d | torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d | nnx.ConvTranspose | -, nn.SpatialFullConvolution, nn.VolumetricFullConvolution
nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d | torch.nn.MaxPool1d, torch.nn.MaxPool2d, torch.nn.MaxPool3d | nnx.max_pool | nn.TemporalMaxPooling, nn.SpatialMaxPooling, nn.VolumetricMaxPooling
nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d | torch.nn.AvgPool1d, torch.nn.AvgPool2d, torch.nn.AvgPool3d | nnx.avg_pool | -, nn.SpatialAveragePooling, nn.VolumetricAveragePooling
nn.LPPool1d, nn.LPPool2d, nn.LPPool3d | torch.nn.LPPool1d, torch.nn.LPPool2d, torch.nn.LPPool3d | - | -, nn.SpatialLPPooling, -
nn.adaptive_avg_pool1d, nn.adaptive_avg_pool2d, nn.adaptive_avg_pool3d | torch.nn.functional.adaptive_avg_pool1d, torch.nn.functional.adaptive_avg_pool2d, torch.nn.functional.adaptive_avg_pool3d | - | -
nn.adaptive_max_pool1d, nn.adaptive_max_pool2d, nn.adaptive_max_pool3d | torch.nn.functional.adaptive_max_pool1d, torch.nn.functional.adaptive_max_pool2d, torch.nn.functional.adaptive_max_pool3d | - | -
nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d | torch.nn.AdaptiveAvgPool1d, torch.nn.AdaptiveAvgPool2d, torch.nn.AdaptiveAvgPool3d | - | -, nn.SpatialAdaptiveAveragePooling, -
nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d | torch.nn.AdaptiveMaxPool1d, torch.nn.AdaptiveMaxPool2d, torch.nn.AdaptiveMaxPool3d | - | -, nn.SpatialAdaptiveMaxPooling, -
nn.GlobalAvgPool, nn.GlobalMaxPool | torch.nn.AdaptiveAvgPool2d, torch.nn.AdaptiveMaxPool2d | jnp.mean, jnp.max | -
nn.max_unpool1d, nn.max_unpool2d, nn.max_unpool3d | torch.nn.functional.max_unpool1d, torch.nn.functional.max_unpool2d, torch.nn.functional.max_unpool3d | - | -
nn.MaxUnpool1d, nn.MaxUnpool2d, nn.MaxUnpool3d | torch.nn.MaxUnpool1d, torch.nn.MaxUnpool2d, torch.nn.MaxUnpool3d | - | -, nn.SpatialMaxUnpooling, nn.VolumetricMaxUnpooling
nn.ZeroPad1d, nn.ZeroPad2d, nn.ZeroPad3d | torch.nn.ZeroPad1d, torch.nn.ZeroPad2d, torch.nn.ZeroPad3d | jnp.pad | -, nn.SpatialZeroPadding, -
nn.ConstantPad1d, nn.ConstantPad2d, nn.ConstantPad3d | torch.nn.ConstantPad1d, torch.nn.ConstantPad2d, torch.nn.ConstantPad3d | jnp.pad | nn.Padding
nn.ReflectionPad1d, nn.ReflectionPad2d, nn.ReflectionPad3d | torch.nn.ReflectionPad1d, torch.nn.ReflectionPad2d, torch.nn.ReflectionPad3d | jnp.pad | -, nn.SpatialReflectionPadding, -
nn.ReplicationPad1d, nn.ReplicationPad2d, nn.ReplicationPad3d | torch.nn.ReplicationPad1d, torch.nn.ReplicationPad2d, torch.nn.ReplicationPad3d | jnp.pad | -, nn.SpatialReplicationPadding, nn.VolumetricReplicationPadding
nn.CircularPad1d, nn.CircularPad2d, nn.CircularPad3d | torch.nn.CircularPad1d, torch.nn.CircularPad2d, torch.nn.CircularPad3d | jnp.pad | -
nn.PixelShuffle, nn.PixelUnshuffle, nn.ChannelShuffle | torch.nn.PixelShuffle, torch.nn.PixelUnshuffle, torch.nn.ChannelShuffle | - | nn.PixelShuffle, -, -
nn.pixel_shuffle, nn.pixel_unshuffle, nn.channel_shuffle | torch.nn.functional.pixel_shuffle, torch.nn.functional.pixel_unshuffle, torch.nn.functional.channel_shuffle | - | -
nn.interpolate, nn.Upsample | torch.nn.functional.interpolate, torch.nn.Upsample | jax.image.resize, - | -, nn.SpatialUpSamplingBilinear
nn.grid_sample, nn.affine_grid | torch.nn.functional.grid_sample, torch.nn.functional.affine_grid | jsp.ndimage.map_coordinates, - | -
nn.unfold, nn.fold | torch.nn.functional.unfold, torch.nn.functional.fold | jax.lax.conv_general_dilated_patches, - | -
nn.normalize | torch.nn.functional.normalize | - | nn.Normalize
nn.cosine_similarity, nn.CosineSimilarity | torch.nn.functional.cosine_similarity, torch.nn.CosineSimilarity | optax.cosine_similarity, - | -, nn.CosineDistance
nn.pairwise_distance | torch.nn.functional.pairwise_distance | - | nn.PairwiseDistance

# Activations
nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.RReLU | torch.nn.ReLU, torch.nn.ReLU6, torch.nn.LeakyReLU, torch.nn.PReLU, torch.nn.RReLU | jax.nn.relu, jax.nn.relu6, jax.nn.leaky_relu, nnx.PReLU, - | nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.RReLU
nn.ELU, nn.SELU, nn.CELU, nn.GELU | torch.nn.ELU, torch.nn.SELU, torch.nn.CELU, torch.nn.GELU | jax.nn.elu, jax.nn.selu, jax.nn.celu, jax.nn.gelu | nn.ELU, -, -, nn.GELU | `jax.nn.gelu` is `{ approximate = "tanh" }` of ours
nn.SiLU, nn.Mish, nn.Softplus, nn.Softsign | torch.nn.SiLU, torch.nn.Mish, torch.nn.Softplus, torch.nn.Softsign | jax.nn.silu, jax.nn.mish, jax.nn.softplus, jax.nn.soft_sign | -, -, nn.SoftPlus, nn.SoftSign
nn.Tanh, nn.Sigmoid, nn.LogSigmoid, nn.Tanhshrink | torch.nn.Tanh, torch.nn.Sigmoid, torch.nn.LogSigmoid, torch.nn.Tanhshrink | jax.nn.tanh, jax.nn.sigmoid, jax.nn.log_sigmoid, - | nn.Tanh, nn.Sigmoid, nn.LogSigmoid, nn.TanhShrink
nn.Softmax, nn.LogSoftmax, nn.Softmin, nn.Softmax2d | torch.nn.Softmax, torch.nn.LogSoftmax, torch.nn.Softmin, torch.nn.Softmax2d | jax.nn.softmax, jax.nn.log_softmax, -, - | nn.SoftMax, nn.LogSoftMax, nn.SoftMin, nn.SpatialSoftMax
nn.Hardtanh, nn.Hardsigmoid, nn.Hardswish | torch.nn.Hardtanh, torch.nn.Hardsigmoid, torch.nn.Hardswish | jax.nn.hard_tanh, jax.nn.hard_sigmoid, jax.nn.hard_swish | nn.HardTanh, -, -
nn.Softshrink, nn.Hardshrink, nn.Threshold | torch.nn.Softshrink, torch.nn.Hardshrink, torch.nn.Threshold | - | nn.SoftShrink, nn.HardShrink, nn.Threshold
nn.GLU, nn.GEGLU, nn.SwiGLU | torch.nn.GLU, -, - | jax.nn.glu, -, - | nn.GatedLinearUnit, -, -
nn.leaky_relu, nn.relu6, nn.prelu | torch.nn.functional.leaky_relu, torch.nn.functional.relu6, torch.nn.functional.prelu | jax.nn.leaky_relu, jax.nn.relu6, - | -
nn.elu, nn.selu, nn.celu | torch.nn.functional.elu, torch.nn.functional.selu, torch.nn.functional.celu | jax.nn.elu, jax.nn.selu, jax.nn.celu | -
nn.mish, nn.softplus, nn.softsign | torch.nn.functional.mish, torch.nn.functional.softplus, torch.nn.functional.softsign | jax.nn.mish, jax.nn.softplus, jax.nn.soft_sign | -
nn.log_sigmoid, nn.tanhshrink, nn.softmin | torch.nn.functional.logsigmoid, torch.nn.functional.tanhshrink, torch.nn.functional.softmin | jax.nn.log_sigmoid, -, - | -
nn.hardtanh, nn.hardsigmoid, nn.hardswish | torch.nn.functional.hardtanh, torch.nn.functional.hardsigmoid, torch.nn.functional.hardswish | jax.nn.hard_tanh, jax.nn.hard_sigmoid, jax.nn.hard_swish | -
nn.softshrink, nn.hardshrink, nn.threshold | torch.nn.functional.softshrink, torch.nn.functional.hardshrink, torch.nn.functional.threshold | - | -
nn.glu, nn.geglu, nn.swiglu | torch.nn.functional.glu, -, - | jax.nn.glu, -, - | -

# Normalisation
nn.LayerNorm, nn.RMSNorm, nn.GroupNorm | torch.nn.LayerNorm, torch.nn.RMSNorm, torch.nn.GroupNorm | nnx.LayerNorm, nnx.RMSNorm, nnx.GroupNorm | -
nn.layer_norm, nn.rms_norm, nn.group_norm | torch.nn.functional.layer_norm, torch.nn.functional.rms_norm, torch.nn.functional.group_norm | - | -
nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d | torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d | nnx.BatchNorm | nn.BatchNormalization, nn.SpatialBatchNormalization, nn.VolumetricBatchNormalization | `momentum` 0.1 is 0.9 in Flax
nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d | torch.nn.InstanceNorm1d, torch.nn.InstanceNorm2d, torch.nn.InstanceNorm3d | nnx.InstanceNorm | -
nn.LocalResponseNorm, nn.local_response_norm | torch.nn.LocalResponseNorm, torch.nn.functional.local_response_norm | - | nn.SpatialCrossMapLRN, -

# Recurrence and attention
nn.RNNCell, nn.LSTMCell, nn.GRUCell | torch.nn.RNNCell, torch.nn.LSTMCell, torch.nn.GRUCell | nnx.SimpleCell, nnx.LSTMCell, nnx.GRUCell | -
nn.RNN, nn.LSTM, nn.GRU | torch.nn.RNN, torch.nn.LSTM, torch.nn.GRU | nnx.RNN | - | time first, as in PyTorch
nn.scaled_dot_product_attention | torch.nn.functional.scaled_dot_product_attention | jax.nn.dot_product_attention | - | heads come before positions, `[b, h, t, d]`; in JAX behind them, `[b, t, h, d]`
nn.MultiheadAttention | torch.nn.MultiheadAttention | nnx.MultiHeadAttention | -
nn.TransformerEncoder, nn.TransformerEncoderLayer | torch.nn.TransformerEncoder, torch.nn.TransformerEncoderLayer | - | - | the encoder has a norm at the end where `norm_first`, or as `norm` says; PyTorch's where it is given one
nn.TransformerDecoder, nn.TransformerDecoderLayer | torch.nn.TransformerDecoder, torch.nn.TransformerDecoderLayer | - | -
nn.Transformer | torch.nn.Transformer | - | -
nn.rotary, nn.RotaryEmbedding, nn.sinusoidal_positions, nn.SinusoidalPositions | - | - | -

# Losses
nn.cross_entropy | torch.nn.functional.cross_entropy, torch.nn.CrossEntropyLoss | optax.softmax_cross_entropy_with_integer_labels | nn.CrossEntropyCriterion | labels count from 0; from 1 in Torch7. Classes are the last axis, in PyTorch the second. Losses are means: those of Optax are of each element or row
nn.nll_loss | torch.nn.functional.nll_loss, torch.nn.NLLLoss | - | nn.ClassNLLCriterion
nn.bce_with_logits | torch.nn.functional.binary_cross_entropy_with_logits, torch.nn.BCEWithLogitsLoss | optax.sigmoid_binary_cross_entropy | -
nn.bce_loss | torch.nn.functional.binary_cross_entropy, torch.nn.BCELoss | - | nn.BCECriterion
nn.mse_loss | torch.nn.functional.mse_loss, torch.nn.MSELoss | optax.squared_error | nn.MSECriterion
nn.l1_loss | torch.nn.functional.l1_loss, torch.nn.L1Loss | - | nn.AbsCriterion
nn.huber_loss, nn.smooth_l1_loss | torch.nn.functional.huber_loss, torch.nn.functional.smooth_l1_loss | optax.huber_loss, - | -, nn.SmoothL1Criterion
nn.kl_div | torch.nn.functional.kl_div, torch.nn.KLDivLoss | optax.kl_divergence | nn.DistKLDivCriterion
nn.poisson_nll_loss, nn.gaussian_nll_loss | torch.nn.functional.poisson_nll_loss, torch.nn.functional.gaussian_nll_loss | - | -
nn.cosine_embedding_loss, nn.triplet_margin_loss | torch.nn.functional.cosine_embedding_loss, torch.nn.functional.triplet_margin_loss | -, optax.losses.triplet_margin_loss | nn.CosineEmbeddingCriterion, -
nn.margin_ranking_loss, nn.hinge_embedding_loss | torch.nn.functional.margin_ranking_loss, torch.nn.functional.hinge_embedding_loss | - | nn.MarginRankingCriterion, nn.HingeEmbeddingCriterion
nn.soft_margin_loss, nn.multi_margin_loss | torch.nn.functional.soft_margin_loss, torch.nn.functional.multi_margin_loss | - | nn.SoftMarginCriterion, nn.MultiMarginCriterion
nn.multilabel_soft_margin_loss, nn.multilabel_margin_loss | torch.nn.functional.multilabel_soft_margin_loss, torch.nn.functional.multilabel_margin_loss | - | nn.MultiLabelSoftMarginCriterion, nn.MultiLabelMarginCriterion
nn.focal_loss, nn.dice_loss | - | optax.sigmoid_focal_loss, optax.losses.dice_loss | -
nn.ctc_loss | torch.nn.functional.ctc_loss, torch.nn.CTCLoss | optax.ctc_loss | -

# Initial values
nn.init.zeros, nn.init.ones, nn.init.constant | torch.nn.init.zeros_, torch.nn.init.ones_, torch.nn.init.constant_ | jax.nn.initializers.zeros, jax.nn.initializers.ones, jax.nn.initializers.constant | - | they give a tensor; what a parameter holds is set by `:set`
nn.init.uniform, nn.init.normal | torch.nn.init.uniform_, torch.nn.init.normal_ | jax.nn.initializers.uniform, jax.nn.initializers.normal | -
nn.init.xavier_uniform, nn.init.xavier_normal | torch.nn.init.xavier_uniform_, torch.nn.init.xavier_normal_ | jax.nn.initializers.xavier_uniform, jax.nn.initializers.xavier_normal | -
nn.init.kaiming_uniform, nn.init.kaiming_normal | torch.nn.init.kaiming_uniform_, torch.nn.init.kaiming_normal_ | jax.nn.initializers.kaiming_uniform, jax.nn.initializers.kaiming_normal | -
nn.init.orthogonal | torch.nn.init.orthogonal_ | jax.nn.initializers.orthogonal | -

# Optimisers
optim.SGD, optim.ASGD | torch.optim.SGD, torch.optim.ASGD | optax.sgd, - | optim.sgd, optim.asgd
optim.Adagrad, optim.Adadelta, optim.RMSprop | torch.optim.Adagrad, torch.optim.Adadelta, torch.optim.RMSprop | optax.adagrad, optax.adadelta, optax.rmsprop | optim.adagrad, optim.adadelta, optim.rmsprop
optim.Adam, optim.AdamW, optim.Adamax | torch.optim.Adam, torch.optim.AdamW, torch.optim.Adamax | optax.adam, optax.adamw, optax.adamax | optim.adam, -, optim.adamax
optim.NAdam, optim.RAdam | torch.optim.NAdam, torch.optim.RAdam | optax.nadam, optax.radam | -
optim.Lion, optim.LAMB | - | optax.lion, optax.lamb | -
optim.Muon | torch.optim.Muon | optax.contrib.muon | -
optim.LBFGS, opt:objective | torch.optim.LBFGS, - | optax.lbfgs, - | optim.lbfgs, -
opt:step | torch.optim.Optimizer.step, torch.optim.Optimizer.zero_grad | optax.apply_updates, nnx.Optimizer | - | takes the loss: gradients and update are one graph, and there is no `zero_grad`
opt:apply | torch.optim.Optimizer.step | optax.apply_updates | - | takes gradients
opt:to, opt:named_cells | -, torch.optim.Optimizer.state_dict | - | -
optim.groups | torch.optim.Optimizer.add_param_group | optax.partition | -
optim.EMA, optim.SWA | torch.optim.swa_utils.get_ema_multi_avg_fn, torch.optim.swa_utils.AveragedModel | nnx.EMA, - | -
ema:update, ema:swap_in, ema:swap_out, ema:averaged, ema:to, ema:named_cells | torch.optim.swa_utils.AveragedModel.update_parameters, -, -, -, -, - | - | -
optim.GradScaler, scaler:step, scaler:to, scaler:named_cells | torch.amp.GradScaler, torch.amp.GradScaler.step, -, torch.amp.GradScaler.state_dict | - | -

# Learning rates
schedules.constant | - | optax.constant_schedule | - | schedules are functions of the step, as in Optax
schedules.step | torch.optim.lr_scheduler.StepLR, torch.optim.lr_scheduler.MultiStepLR | optax.piecewise_constant_schedule | -
schedules.exponential, schedules.linear, schedules.cosine | torch.optim.lr_scheduler.ExponentialLR, torch.optim.lr_scheduler.LinearLR, torch.optim.lr_scheduler.CosineAnnealingLR | optax.exponential_decay, optax.linear_schedule, optax.cosine_decay_schedule | -
schedules.polynomial, schedules.one_cycle | torch.optim.lr_scheduler.PolynomialLR, torch.optim.lr_scheduler.OneCycleLR | optax.polynomial_schedule, optax.cosine_onecycle_schedule | -
schedules.warmup, schedules.inverse_sqrt | - | optax.warmup_constant_schedule, - | -
schedules.sequence, schedules.chained | torch.optim.lr_scheduler.SequentialLR, torch.optim.lr_scheduler.ChainedScheduler | optax.join_schedules, - | -
schedules.reduce_on_plateau, plateau:step, plateau:state, plateau:restore | torch.optim.lr_scheduler.ReduceLROnPlateau, torch.optim.lr_scheduler.ReduceLROnPlateau.step, torch.optim.lr_scheduler.ReduceLROnPlateau.state_dict, torch.optim.lr_scheduler.ReduceLROnPlateau.load_state_dict | optax.contrib.reduce_on_plateau, -, -, - | -
]]
