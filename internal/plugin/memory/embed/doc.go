// Package embed implements [memory.Embedder] with services: OpenAI and servers of its
// format (LM Studio, llama.cpp, vLLM), Gemini, Voyage, Mistral and Ollama.
//
// Texts are sent in batches of bounded size. A request that fails because the service is
// busy or out of order is repeated after a while. What a service returns is checked: as
// many vectors as texts, all of one length, with finite numbers that are not all zero.
package embed
