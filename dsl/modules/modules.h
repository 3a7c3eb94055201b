/* What the modules of stdlib/ that are here in C give to them; dsl/module.c opens them. */
#ifndef DC_DSL_MODULES_MODULES_H
#define DC_DSL_MODULES_MODULES_H

#include "dsl/base/binding.h"

extern const dc_bindings dc_file_bindings, dc_batches_bindings, dc_terminal_bindings,
    dc_tables_bindings, dc_media_bindings, dc_fetch_bindings, dc_folder_bindings, dc_span_bindings,
    dc_tensor_file_bindings, dc_json_bindings, dc_quantized_bindings, dc_summary_bindings,
    dc_screen_bindings;
extern const dc_utype dc_file_type, dc_batches_type, dc_npz_type, dc_csv_type, dc_csv_columns_type,
    dc_json_type;
extern const dc_bindings dc_file_methods, dc_npz_methods, dc_csv_methods;

void dc_batches_close_all(dc_dsl *d);

#endif
