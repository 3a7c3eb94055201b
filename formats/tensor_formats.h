/* The formats that formats/tensor_file.c opens, each as a file of tensors. */
#ifndef DC_FORMATS_TENSOR_FORMATS_H
#define DC_FORMATS_TENSOR_FORMATS_H

#include "formats/tensor_file.h"

dc_status dc_safetensors_open_file(dc_job *j, const char *path, dc_tensor_file **out);

/*
 * GGUF, versions 2 and 3, little-endian (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md). Axes are in our
 * order, the last one along memory. Tensors lie in the file and do not overlap; there may be gaps.
 */
dc_status dc_gguf_open(dc_job *j, const char *path, dc_tensor_file **out);

/* The index of several safetensors files (formats/shards.c); a folder that has one, or has one such file. */
dc_status dc_shards_open(dc_job *j, const char *path, dc_tensor_file **out);
dc_status dc_shards_open_folder(dc_job *j, const char *folder, dc_tensor_file **out);

/*
 * What torch.save of PyTorch writes: archives, and the older files of several pickles. Tensors, and tables and lists of them
 * and of plain values; nothing of the file is run, and what is anything else is refused with its name (formats/pickle.h).
 */
dc_status dc_torch_open(dc_job *j, const char *path, dc_tensor_file **out);

/* Arrays of NumPy: an archive, or one, whose name is "value" (formats/npyfile.c). */
dc_status dc_npyfile_open(dc_job *j, const char *path, bool archive, dc_tensor_file **out);

#endif
