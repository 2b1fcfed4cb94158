package main

import (
	"fmt"
	"strings"
	"sync"

	copilot "github.com/github/copilot-sdk/go"
	"github.com/github/copilot-sdk/go/rpc"
)

type clearParams struct {
	Prompt string `json:"prompt"`
}

type noteParams struct {
	Text string `json:"text"`
}

// Note is a tool that says what it got.
func note() copilot.Tool {
	return copilot.DefineTool("note", "Take a note.",
		func(params noteParams, _ copilot.ToolInvocation) (string, error) { return "noted " + params.Text, nil })
}

func clearing(s *stage) (saw, error) {
	var session *copilot.Session
	tool := copilot.DefineTool("clear_context", "Clear the conversation and start a fresh context window.",
		func(params clearParams, invocation copilot.ToolInvocation) (string, error) {
			done, err := session.RPC.History.ClearContext(
				invocation.TraceContext, &rpc.HistoryClearContextRequest{Prompt: params.Prompt})
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("Cleared %d messages.", done.MessagesCleared), nil
		})
	tool.IsTerminal, tool.Defer = true, copilot.ToolDeferNever
	config := s.config()
	config.Tools = []copilot.Tool{tool}
	session, err := s.client.CreateSession(s.ctx, config)
	if err != nil {
		return nil, err
	}
	var kinds list
	session.On(func(event copilot.SessionEvent) { kinds.add(string(event.Type())) })
	replies := []string{}
	for _, prompt := range []string{"hello", "please start over"} {
		reply, err := s.ask(session, prompt)
		if err != nil {
			return nil, err
		}
		replies = append(replies, reply)
	}
	events, err := session.GetEvents(s.ctx)
	if err != nil {
		return nil, err
	}
	cleared := []any{}
	for _, event := range events {
		if data, ok := event.Data.(*copilot.SessionContextClearedData); ok {
			cleared = append(cleared, data.InitialMessage, data.MessagesCleared)
		}
	}
	return saw{"replies": replies, "kinds": kinds.all(), "cleared": cleared}, session.Disconnect()
}

func aborting(s *stage) (saw, error) {
	started, stuck := make(chan struct{}), make(chan struct{})
	defer close(stuck)
	config := s.config()
	config.Tools = []copilot.Tool{copilot.DefineTool("note", "Take a note.",
		func(_ noteParams, _ copilot.ToolInvocation) (string, error) {
			close(started)
			<-stuck
			return "too late", nil
		})}
	session, err := s.client.CreateSession(s.ctx, config)
	if err != nil {
		return nil, err
	}
	idle := make(chan struct{}, 8)
	var kinds list
	session.On(func(event copilot.SessionEvent) {
		kinds.add(string(event.Type()))
		if event.Type() == copilot.SessionEventTypeSessionIdle {
			idle <- struct{}{}
		}
	})
	if _, err := session.Send(s.ctx, copilot.MessageOptions{Prompt: "use note"}); err != nil {
		return nil, err
	}
	for _, ready := range []chan struct{}{started, idle} {
		if ready == idle {
			if err := session.Abort(s.ctx); err != nil {
				return nil, err
			}
		}
		select {
		case <-ready:
		case <-s.ctx.Done():
			return nil, fmt.Errorf("the turn did not end; events: %s", strings.Join(kinds.all(), " "))
		}
	}
	reply, err := s.ask(session, "hello")
	return saw{"kinds": kinds.all(), "reply": reply}, err
}

func permission(s *stage) (saw, error) {
	var asked list
	config := s.config()
	config.Tools = []copilot.Tool{note()}
	allow := false
	config.OnPermissionRequest = func(
		request copilot.PermissionRequest, _ copilot.PermissionInvocation,
	) (rpc.PermissionDecision, error) {
		asked.add(string(request.Kind()))
		if allow {
			return &rpc.PermissionDecisionApproveOnce{}, nil
		}
		return &rpc.PermissionDecisionReject{Feedback: copilot.String("not today")}, nil
	}
	session, err := s.client.CreateSession(s.ctx, config)
	if err != nil {
		return nil, err
	}
	denied, err := s.ask(session, "use note")
	if err != nil {
		return nil, err
	}
	allow = true
	allowed, err := s.ask(session, "use note")
	return saw{"asked": asked.all(), "denied": denied, "allowed": allowed}, err
}

func userInput(s *stage) (saw, error) {
	var asked list
	config := s.config()
	config.OnUserInputRequest = func(
		request copilot.UserInputRequest, _ copilot.UserInputInvocation,
	) (copilot.UserInputResponse, error) {
		asked.add(request.Question)
		return copilot.UserInputResponse{Answer: request.Choices[1], WasFreeform: false}, nil
	}
	session, err := s.client.CreateSession(s.ctx, config)
	if err != nil {
		return nil, err
	}
	reply, err := s.ask(session, "use ask_user")
	return saw{"asked": asked.all(), "reply": reply}, err
}

func hooks(s *stage) (saw, error) {
	var called list
	deny := false
	config := s.config()
	config.Tools = []copilot.Tool{note()}
	config.Hooks = &copilot.SessionHooks{
		OnPreToolUse: func(
			input copilot.PreToolUseHookInput, _ copilot.HookInvocation,
		) (*copilot.PreToolUseHookOutput, error) {
			called.add("pre " + input.ToolName)
			if deny {
				return &copilot.PreToolUseHookOutput{
					PermissionDecision: "deny", PermissionDecisionReason: "house rules"}, nil
			}
			return &copilot.PreToolUseHookOutput{
				PermissionDecision: "allow", ModifiedArgs: map[string]any{"text": "of the hook"}}, nil
		},
		OnPostToolUse: func(
			input copilot.PostToolUseHookInput, _ copilot.HookInvocation,
		) (*copilot.PostToolUseHookOutput, error) {
			called.add("post " + input.ToolName)
			return nil, nil
		},
		OnUserPromptSubmitted: func(
			input copilot.UserPromptSubmittedHookInput, _ copilot.HookInvocation,
		) (*copilot.UserPromptSubmittedHookOutput, error) {
			called.add("prompt " + input.Prompt)
			return nil, nil
		},
	}
	session, err := s.client.CreateSession(s.ctx, config)
	if err != nil {
		return nil, err
	}
	modified, err := s.ask(session, "use note")
	if err != nil {
		return nil, err
	}
	deny = true
	denied, err := s.ask(session, "use note")
	return saw{"called": called.all(), "modified": modified, "denied": denied}, err
}

func streaming(s *stage) (saw, error) {
	config := s.config()
	config.Streaming = copilot.Bool(true)
	session, err := s.client.CreateSession(s.ctx, config)
	if err != nil {
		return nil, err
	}
	var deltas list
	session.On(func(event copilot.SessionEvent) {
		if data, ok := event.Data.(*copilot.AssistantMessageDeltaData); ok {
			deltas.add(data.DeltaContent)
		}
	})
	reply, err := s.ask(session, "hello")
	return saw{"deltas": deltas.all(), "reply": reply}, err
}

func resuming(s *stage) (saw, error) {
	first, err := s.client.CreateSession(s.ctx, s.config())
	if err != nil {
		return nil, err
	}
	if _, err := s.ask(first, "hello"); err != nil {
		return nil, err
	}
	if err := first.Disconnect(); err != nil {
		return nil, err
	}
	client := s.client
	if s.uri { // the server outlives its clients
		client = copilot.NewClient(&copilot.ClientOptions{Connection: s.connect()})
		if err := client.Start(s.ctx); err != nil {
			return nil, err
		}
		defer client.Stop()
	}
	config := s.config()
	second, err := client.ResumeSession(s.ctx, first.SessionID, &copilot.ResumeSessionConfig{
		Model: config.Model, Provider: config.Provider, OnPermissionRequest: config.OnPermissionRequest,
		SystemMessage: config.SystemMessage, Tools: []copilot.Tool{note()},
	})
	if err != nil {
		return nil, err
	}
	reply, err := s.ask(second, "use note")
	if err != nil {
		return nil, err
	}
	events, err := second.GetEvents(s.ctx)
	if err != nil {
		return nil, err
	}
	said := []string{}
	for _, event := range events {
		if data, ok := event.Data.(*copilot.UserMessageData); ok {
			said = append(said, data.Content)
		}
	}
	return saw{"same": first.SessionID == second.SessionID, "reply": reply, "said": said}, second.Disconnect()
}

func listing(s *stage) (saw, error) {
	session, err := s.client.CreateSession(s.ctx, s.config())
	if err != nil {
		return nil, err
	}
	if _, err := s.ask(session, "hello"); err != nil {
		return nil, err
	}
	listed := func() (bool, error) {
		all, err := s.client.ListSessions(s.ctx, nil)
		for _, one := range all {
			if one.SessionID == session.SessionID {
				return true, err
			}
		}
		return false, err
	}
	before, err := listed()
	if err != nil {
		return nil, err
	}
	if err := session.Disconnect(); err != nil {
		return nil, err
	}
	if err := s.client.DeleteSession(s.ctx, session.SessionID); err != nil {
		return nil, err
	}
	after, err := listed()
	if err != nil {
		return nil, err
	}
	_, gone := s.client.ResumeSession(s.ctx, session.SessionID, &copilot.ResumeSessionConfig{
		OnPermissionRequest: copilot.PermissionHandler.ApproveAll})
	return saw{"before": before, "after": after, "resumed": gone == nil}, nil
}

func two(s *stage) (saw, error) {
	type answer struct {
		reply string
		err   error
	}
	names := []string{"left", "right"}
	var running sync.WaitGroup
	running.Add(len(names))
	answers := make([]chan answer, len(names))
	for i, name := range names {
		config := s.config()
		config.Tools = []copilot.Tool{copilot.DefineTool("note", "Take a note.",
			func(_ noteParams, _ copilot.ToolInvocation) (string, error) {
				running.Done()
				running.Wait() // so that both are at work
				return name, nil
			})}
		session, err := s.client.CreateSession(s.ctx, config)
		if err != nil {
			return nil, err
		}
		answers[i] = make(chan answer, 1)
		go func() {
			reply, err := s.ask(session, "use note")
			answers[i] <- answer{reply, err}
		}()
	}
	replies := []string{}
	for _, one := range answers {
		answer := <-one
		if answer.err != nil {
			return nil, answer.err
		}
		replies = append(replies, answer.reply)
	}
	return saw{"replies": replies}, nil
}
