-- Names of deepc beside those of PyTorch, JAX and Torch7: transforms, linear algebra, distributions, data, metrics
-- (names.lua reads it).

return [[
# Fourier transforms
fft.fft, fft.ifft, fft.rfft, fft.irfft, fft.hfft, fft.ihfft | torch.fft.fft, torch.fft.ifft, torch.fft.rfft, torch.fft.irfft, torch.fft.hfft, torch.fft.ihfft | jnp.fft.fft, jnp.fft.ifft, jnp.fft.rfft, jnp.fft.irfft, jnp.fft.hfft, jnp.fft.ihfft | -
fft.fft2, fft.ifft2, fft.rfft2, fft.irfft2 | torch.fft.fft2, torch.fft.ifft2, torch.fft.rfft2, torch.fft.irfft2 | jnp.fft.fft2, jnp.fft.ifft2, jnp.fft.rfft2, jnp.fft.irfft2 | -
fft.fftn, fft.ifftn, fft.rfftn, fft.irfftn | torch.fft.fftn, torch.fft.ifftn, torch.fft.rfftn, torch.fft.irfftn | jnp.fft.fftn, jnp.fft.ifftn, jnp.fft.rfftn, jnp.fft.irfftn | -
fft.fftfreq, fft.rfftfreq, fft.fftshift, fft.ifftshift | torch.fft.fftfreq, torch.fft.rfftfreq, torch.fft.fftshift, torch.fft.ifftshift | jnp.fft.fftfreq, jnp.fft.rfftfreq, jnp.fft.fftshift, jnp.fft.ifftshift | -
fft.dct, fft.idct, fft.dst, fft.idst | - | jsp.fft.dct, jsp.fft.idct, -, - | -

# Signals
signal.hann_window, signal.hamming_window, signal.blackman_window | torch.hann_window, torch.hamming_window, torch.blackman_window | jnp.hanning, jnp.hamming, jnp.blackman | - | periodic as in PyTorch, of n; those of NumPy and JAX are symmetric: `{ periodic = false }`
signal.stft, signal.istft | torch.stft, torch.istft | jsp.signal.stft, jsp.signal.istft | -
signal.hz_to_mel, signal.mel_to_hz, signal.mel_filters, signal.mel_spectrogram | - | - | - | librosa and torchaudio have them

# Linear algebra
linalg.cholesky, linalg.qr | torch.linalg.cholesky, torch.linalg.qr | jnp.linalg.cholesky, jnp.linalg.qr | torch.potrf, torch.qr
linalg.lu, linalg.lu_factor, linalg.lu_solve | torch.linalg.lu, torch.linalg.lu_factor, torch.linalg.lu_solve | jsp.linalg.lu, jsp.linalg.lu_factor, jsp.linalg.lu_solve | - | `lu_factor` gives which row is where, from 0; the others exchanges one after the other, PyTorch from 1
linalg.eigh, linalg.eigvalsh, linalg.eig, linalg.eigvals | torch.linalg.eigh, torch.linalg.eigvalsh, torch.linalg.eig, torch.linalg.eigvals | jnp.linalg.eigh, jnp.linalg.eigvalsh, jnp.linalg.eig, jnp.linalg.eigvals | torch.symeig, -, torch.eig, -
linalg.svd, linalg.svdvals | torch.linalg.svd, torch.linalg.svdvals | jnp.linalg.svd, jnp.linalg.svdvals | torch.svd, -
linalg.solve, linalg.triangular_solve | torch.linalg.solve, torch.linalg.solve_triangular | jnp.linalg.solve, jsp.linalg.solve_triangular | torch.gesv, torch.trtrs | `triangular_solve` reads the lower triangle; the upper one with `{ upper = true }`, in JAX and Torch7 without a word
linalg.inv, linalg.inverse, linalg.pinv | torch.linalg.inv, torch.inverse, torch.linalg.pinv | jnp.linalg.inv, jnp.linalg.inv, jnp.linalg.pinv | torch.inverse, torch.inverse, -
linalg.cholesky_solve, linalg.cholesky_inverse | torch.cholesky_solve, torch.cholesky_inverse | jsp.linalg.cho_solve, - | torch.potrs, torch.potri
linalg.lstsq | torch.linalg.lstsq | jnp.linalg.lstsq | torch.gels
linalg.det, linalg.slogdet, linalg.matrix_rank, linalg.cond | torch.linalg.det, torch.linalg.slogdet, torch.linalg.matrix_rank, torch.linalg.cond | jnp.linalg.det, jnp.linalg.slogdet, jnp.linalg.matrix_rank, jnp.linalg.cond | -
linalg.norm, linalg.vector_norm, linalg.matrix_norm | torch.linalg.norm, torch.linalg.vector_norm, torch.linalg.matrix_norm | jnp.linalg.norm, jnp.linalg.vector_norm, jnp.linalg.matrix_norm | torch.norm, -, -
linalg.matrix_exp, linalg.matrix_power, linalg.multi_dot | torch.linalg.matrix_exp, torch.linalg.matrix_power, torch.linalg.multi_dot | jsp.linalg.expm, jnp.linalg.matrix_power, jnp.linalg.multi_dot | -

# Distributions
random.exponential, random.laplace, random.gumbel, random.cauchy | torch.distributions.Exponential, torch.distributions.Laplace, torch.distributions.Gumbel, torch.distributions.Cauchy | jax.random.exponential, jax.random.laplace, jax.random.gumbel, jax.random.cauchy | torch.exponential, -, -, torch.cauchy
random.log_normal, random.truncated_normal | torch.distributions.LogNormal, torch.nn.init.trunc_normal_ | jax.random.lognormal, jax.random.truncated_normal | torch.logNormal, -
random.gamma, random.beta, random.dirichlet | torch.distributions.Gamma, torch.distributions.Beta, torch.distributions.Dirichlet | jax.random.gamma, jax.random.beta, jax.random.dirichlet | -
random.chi2, random.student_t | torch.distributions.Chi2, torch.distributions.StudentT | jax.random.chisquare, jax.random.t | -
random.geometric, random.poisson, random.binomial | torch.distributions.Geometric, torch.distributions.Poisson, torch.distributions.Binomial | jax.random.geometric, jax.random.poisson, jax.random.binomial | torch.geometric, -, - | `geometric` counts tries, from 1; `torch.distributions.Geometric` failures, one less
random.categorical, random.multinomial | torch.distributions.Categorical, torch.multinomial | jax.random.categorical, jax.random.choice | -, torch.multinomial
random.permutation, random.shuffle | torch.randperm, - | jax.random.permutation, jax.random.permutation | torch.randperm, -

# Data
data.set | torch.utils.data.TensorDataset | - | -
set:batches | torch.utils.data.DataLoader | - | - | an iterator, of an epoch for each `for`; one table of options
set:rows, set:random_split | torch.utils.data.Subset, torch.utils.data.random_split | - | -
set:k_fold, set:position, set:restore | - | - | -
data.stream, stream:batches, stream:position, stream:restore | torch.utils.data.IterableDataset, torch.utils.data.DataLoader, -, - | - | -
data.rows, rows:row, rows:lengths | torch.from_file, -, - | - | -
data.ragged | torch.nn.utils.rnn.pad_sequence | - | -
data.idx, data.fashion_mnist, data.mnist, data.cifar10 | - | - | - | torchvision.datasets has them
data.read_npy, data.write_npy, data.read_npz, data.write_npz | - | jnp.load, jnp.save, jnp.load, jnp.savez | -
data.read_csv, data.write_csv | - | - | - | pandas has them
data.read_image, data.write_image, data.images, data.image_folder | - | - | image.load, image.save, -, - | torchvision has them
data.read_wav, data.read_sound, data.write_wav, data.sounds | - | - | - | torchaudio has them
data.read_bytes | torch.from_file | jnp.fromfile | torch.DiskFile
data.read_sheet, data.files, data.class_files, data.read_text, data.Vocabulary | - | - | -
vocabulary:number, vocabulary:encode, vocabulary:decode | - | - | -
data.fetch | torch.hub.download_url_to_file | - | -

# Metrics
metrics.accuracy, metrics.top_k_accuracy, metrics.Accuracy | - | -, -, nnx.metrics.Accuracy | - | scikit-learn and torchmetrics have those of this part
metric:update, metric:result, metric:reset, metric:to, metric:named_cells | - | nnx.metrics.Metric.update, nnx.metrics.Metric.compute, nnx.metrics.Metric.reset, -, - | -
metrics.confusion_matrix, metrics.precision, metrics.recall, metrics.f1, metrics.iou | - | - | optim.ConfusionMatrix, -, -, -, -
metrics.ConfusionMatrix:precision, metrics.ConfusionMatrix:recall, metrics.ConfusionMatrix:f1, metrics.ConfusionMatrix:iou, metrics.ConfusionMatrix:accuracy | - | - | -
metrics.Mean, metrics.RunningAverage | - | nnx.metrics.Average, - | -
metrics.mse, metrics.mae, metrics.r2, metrics.MSE, metrics.MAE, metrics.R2 | - | - | -
metrics.roc_auc, metrics.average_precision, metrics.AUC:average_precision | - | - | -
metrics.perplexity, metrics.Perplexity, metrics.bleu | - | - | -
]]
