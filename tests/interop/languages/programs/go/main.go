// What a program of this language meets: plays each scene with the official client, and prints what it saw, a JSON
// object a line. Arguments: the way to the runtime (uri, stdio or tcp), the runtime (an address or a program), the
// token of the server ("" where there is none), the model's base URL.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	copilot "github.com/github/copilot-sdk/go"
)

// Longest is how long one scene may take on a busy machine.
const longest = 60 * time.Second

type saw map[string]any

type stage struct {
	ctx     context.Context
	connect func() copilot.RuntimeConnection
	client  *copilot.Client
	baseURL string
	uri     bool
}

func main() {
	way, runtime, token, baseURL := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	connect := map[string]func() copilot.RuntimeConnection{
		"uri": func() copilot.RuntimeConnection {
			return copilot.URIConnection{URL: runtime, ConnectionToken: token}
		},
		"stdio": func() copilot.RuntimeConnection { return copilot.StdioConnection{Path: runtime} },
		"tcp": func() copilot.RuntimeConnection {
			return copilot.TCPConnection{Path: runtime, ConnectionToken: token}
		},
	}[way]
	scenes := []struct {
		name string
		play func(*stage) (saw, error)
	}{
		{"clear", clearing}, {"abort", aborting}, {"permission", permission}, {"user_input", userInput},
		{"hooks", hooks}, {"streaming", streaming}, {"resume", resuming}, {"list", listing}, {"two", two},
	}
	client := copilot.NewClient(&copilot.ClientOptions{Connection: connect()})
	if err := client.Start(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, scene := range scenes {
		ctx, cancel := context.WithTimeout(context.Background(), longest)
		seen, err := scene.play(&stage{ctx, connect, client, baseURL, way == "uri"})
		cancel()
		if err != nil {
			seen = saw{"error": err.Error()}
		}
		seen["scene"] = scene.name
		line, _ := json.Marshal(seen)
		fmt.Println(string(line))
	}
	if err := client.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Config is what the sessions of all scenes have in common.
func (s *stage) config() *copilot.SessionConfig {
	return &copilot.SessionConfig{
		Model:               "fake",
		Provider:            &copilot.ProviderConfig{Type: "openai", BaseURL: s.baseURL, APIKey: "key"},
		SystemMessage:       &copilot.SystemMessageConfig{Mode: "replace", Content: "You are terse."},
		OnPermissionRequest: copilot.PermissionHandler.ApproveAll,
	}
}

// Ask sends a message and waits for the answer's text.
func (s *stage) ask(session *copilot.Session, prompt string) (string, error) {
	event, err := session.SendAndWait(s.ctx, copilot.MessageOptions{Prompt: prompt})
	if err != nil || event == nil {
		return "", err
	}
	if data, ok := event.Data.(*copilot.AssistantMessageData); ok {
		return data.Content, nil
	}
	return "", fmt.Errorf("the answer is a %s", event.Type())
}

// List is a list that handlers may add to.
type list struct {
	mu    sync.Mutex
	items []string
}

func (l *list) add(item string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = append(l.items, item)
}

func (l *list) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{}, l.items...)
}
