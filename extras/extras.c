/* The table of dsl/extras.h. Without DC_EXTRAS it is empty. */
#include "dsl/extras.h"

#ifdef DC_EXTRAS
#include "extras/llm/tokenizers.h"
#include "extras/viz/viz_page.h"

extern const struct dc_stdlib_module dc_editors_modules[], dc_llm_modules[], dc_pjrt_modules[],
    dc_plot_modules[], dc_signal_modules[], dc_stablehlo_modules[], dc_viz_modules[];
#endif

const dc_extra dc_extras[] = {
#ifdef DC_EXTRAS
    {dc_editors_modules, NULL, NULL},
    {dc_llm_modules, &dc_tokenizer_bindings, &dc_tokenizer_type},
    {dc_pjrt_modules, NULL, NULL},
    {dc_plot_modules, NULL, NULL},
    {dc_signal_modules, NULL, NULL},
    {dc_stablehlo_modules, NULL, NULL},
    {dc_viz_modules, &dc_viz_page_bindings, NULL},
#endif
    {NULL, NULL, NULL},
};
