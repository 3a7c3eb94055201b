/* Tokenizers for Lua (extras/llm/tokenizer/). */
#ifndef DC_EXTRAS_LLM_TOKENIZERS_H
#define DC_EXTRAS_LLM_TOKENIZERS_H

#include "dsl/base/binding.h"

extern const dc_bindings dc_tokenizer_bindings;
extern const dc_utype dc_tokenizer_type;

#endif
